"""Cats and dogs, from a tutorial."""

import argparse
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Pets(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.images = rng.integers(0, 255, (n, 3, 48, 48), dtype=np.uint8)
        self.labels = rng.integers(0, 2, n)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        x = torch.from_numpy(self.images[i]).float() / 255
        if torch.rand(()) < 0.5:
            x = x.flip(-1)
        return x, int(self.labels[i])


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.short = nn.Conv2d(i, o, 1, stride, bias=False)

    def forward(self, x):
        h = self.bn1(self.conv1(x)).relu()
        return (self.bn2(self.conv2(h)) + self.short(x)).relu()


def train(steps):
    torch.manual_seed(0)
    loader = DataLoader(Pets(steps * 16), batch_size=16, shuffle=True)
    model = nn.Sequential(
        BasicBlock(3, 24, 1),
        BasicBlock(24, 32, 2),
        BasicBlock(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 2),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    start = time.perf_counter()
    for batch, (x, y) in enumerate(loader, 1):
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if batch % 40 == 0:
            print(f"loss: {loss.item():>7f}  [{batch:>5d}/{len(loader):>5d}]")
    print(f"trained {batch} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100)
    train(ap.parse_args().steps)
