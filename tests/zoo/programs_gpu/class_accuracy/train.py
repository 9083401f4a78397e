"""Classify synthetic spectrograms, with the accuracy of each class."""

from __future__ import annotations

import argparse
import logging
import time

import torch
from metrics import ClassAccuracy, DeviceClassAccuracy
from torch import nn

log = logging.getLogger("train")
CLASSES = 40


def network() -> nn.Module:
    layers: list[nn.Module] = []
    width = 1
    for out in (32, 64, 128, 128):
        layers += [nn.Conv2d(width, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
        width = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES))


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batches", type=int, default=80)
    parser.add_argument("--on-device", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(1)
    device = torch.device("cuda")
    spectra = torch.randn(4096, 1, 64, 64, device=device)
    labels = torch.randint(0, CLASSES, (4096,), device=device)
    model = network().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    begin = time.perf_counter()
    for epoch in range(args.epochs):
        accuracy = (
            DeviceClassAccuracy(CLASSES, device) if args.on_device else ClassAccuracy(CLASSES)
        )
        for index in torch.randint(0, len(spectra), (args.batches, 256), device=device):
            optimizer.zero_grad(set_to_none=True)
            logits = model(spectra[index])
            loss = criterion(logits, labels[index])
            loss.backward()
            optimizer.step()
            accuracy.update(logits.detach(), labels[index])
        log.info("epoch %d: accuracy %.3f", epoch, accuracy.value())
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    print(f"trained {args.epochs * args.batches} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
