"""Ripeness of plums from the readings of the sorting line."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Readings(Dataset):
    def __init__(self, count=1600):
        g = torch.Generator().manual_seed(4)
        self.values = torch.randn(count, 3, 24, 24, generator=g)
        self.labels = torch.randint(0, 5, (count,), generator=g)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        time.sleep(0.002)
        return self.values[i], self.labels[i]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-workers", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(Readings(), batch_size=16, shuffle=True, num_workers=args.num_workers)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(64, 5),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    steps = 0
    start = time.perf_counter()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        steps += 1
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
