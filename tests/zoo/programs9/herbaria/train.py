"""Pressed plants: each sheet has its own record, the network sees the scan."""

import argparse
import gc
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sheets(Dataset):
    def __init__(self, count):
        self.scans = torch.randn(400, 3, 24, 24)
        self.records = [
            {"sheet": i, "place": [i % 90, i % 180], "genus": {"id": i % 12}} for i in range(count)
        ]

    def __len__(self):
        return 1920

    def __getitem__(self, i):
        return self.scans[i % 400], self.records[i]["genus"]["id"]


def train_epoch(model, loader, optimizer, collect_every):
    steps = 0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % collect_every == 0:
            gc.collect()
    return steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--collect-every", type=int, default=4)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(Sheets(2400), batch_size=24, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 24, 3), nn.ReLU(), nn.Conv2d(24, 48, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 12),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    start = time.perf_counter()
    steps = train_epoch(model, loader, optimizer, args.collect_every)
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
