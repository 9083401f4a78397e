"""Tell the lattice of a crystal from its diffraction pattern."""

import argparse
import time

import torch
from simulate import Crystals
from torch import nn
from torch.utils.data import DataLoader


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, stride=2, padding=1),
        nn.ReLU(inplace=True),
    )


def build():
    return nn.Sequential(
        nn.Conv2d(1, 16, 7, stride=2, padding=3),
        nn.ReLU(inplace=True),
        block(16, 24),
        block(24, 48),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(48, 3),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--samples", type=int, default=4320)
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)

    loader = DataLoader(
        Crystals(args.samples),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.num_workers,
        drop_last=True,
    )
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

    steps = 0
    begin = time.perf_counter()
    for patterns, lattices in loader:
        loss = criterion(model(patterns), lattices)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 50 == 0:
            print(f"step {steps} loss {loss.item():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
