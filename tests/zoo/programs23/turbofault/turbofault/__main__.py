import argparse
import logging
import time

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from . import diary
from .model import FaultNet
from .telemetry import CHANNELS, FAULTS, make_windows


def loader_of(dataset, batch_size):
    sampler = BatchSampler(RandomSampler(dataset), batch_size, drop_last=True)
    return DataLoader(dataset, sampler=sampler, batch_size=None)


def main() -> None:
    parser = argparse.ArgumentParser(prog="turbofault")
    parser.add_argument("--windows", type=int, default=2880)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--log-level", choices=["debug", "info"], default="debug")
    parser.add_argument("--log-file", default="turbofault.log")
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(21)
    diary.setup(args.log_level, args.log_file)
    loader = loader_of(make_windows(args.windows, seed=21), args.batch_size)
    model = FaultNet(CHANNELS, FAULTS)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)

    step = 0
    began = time.perf_counter()
    for epoch in range(args.epochs):
        for windows, faults in loader:
            optimizer.zero_grad()
            logits = model(windows)
            loss = criterion(logits, faults)
            loss.backward()
            optimizer.step()
            step += 1
            if diary.log.isEnabledFor(logging.DEBUG):
                diary.describe(step, model, logits.detach().softmax(dim=1), faults)
        scheduler.step()
        diary.log.info("epoch %d: loss %.4f", epoch, loss.item())
    print(f"trained {step} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
