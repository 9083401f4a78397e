"""Plankton or debris: a residual network on cut-outs of different sizes."""

import argparse
import time

import torch
import torch.nn.functional as F
from data import Plankton, resize, resize_at_once
from torch import nn
from torch.utils.data import DataLoader


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(4, channels)

    def forward(self, x):
        return x + self.second(F.relu(self.first(self.norm(x))))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resize", choices=["loop", "gather"], default="loop")
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    scale = resize if args.resize == "loop" else resize_at_once
    train = DataLoader(Plankton(640, 40, scale), batch_size=16, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 5, stride=2, padding=2),
        *[Residual(32) for _ in range(3)],
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 2),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    done = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for x, y in train:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            done += 1
        print(f"epoch {epoch} loss {loss.item():.4f}")
    print(f"trained {done} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
