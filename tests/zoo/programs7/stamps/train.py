import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from augment import Compose, RandomCrop, RandomFlip, Soften, Standardize
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Album(Dataset):
    def __init__(self, count, transform):
        rng = np.random.default_rng(11)
        self.scans = rng.integers(0, 256, (24, 384, 384, 3), dtype=np.uint8)
        self.labels = rng.integers(0, 12, count)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        rng = np.random.default_rng(1000 + i)
        scan = self.scans[i % len(self.scans)].astype(np.float32) / 255
        image = self.transform(scan, rng)
        return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))), self.labels[i]


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)


class StampNet(nn.Module):
    def __init__(self, classes=12):
        super().__init__()
        self.blocks = nn.Sequential(Block(3, 16), Block(16, 32), Block(32, 48))
        self.out = nn.Linear(48, classes)

    def forward(self, x):
        return self.out(self.blocks(x).mean((2, 3)))


def build_transform(order):
    crop, soften = RandomCrop(44), Soften()
    stages = [soften, crop] if order == "full" else [crop, soften]
    return Compose(*stages, RandomFlip(), Standardize())


def fit(model, loader, epochs, lr):
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    n = 0
    for _ in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            n += 1
            if n % 40 == 0:
                print(f"{n:5d}  {loss.item():.3f}")
    return n


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--order", choices=("full", "cropped"), default="full")
    ap.add_argument("--epochs", type=int, default=1)
    ns = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(5)
    data = DataLoader(
        Album(1920, build_transform(ns.order)),
        16,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
    )
    net = StampNet()
    t0 = time.time()
    steps = fit(net, data, ns.epochs, 0.05)
    print(f"trained {steps} steps in {time.time() - t0:.3f} s")
