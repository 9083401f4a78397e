"""Land-use classification from sharded tiles."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, IterableDataset

torch.set_num_threads(1)
PER_SHARD, BATCH = 16, 24


def write_shards(root, count):
    root.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for i in range(count):
        coarse = rng.integers(0, 255, (PER_SHARD * BATCH, 3, 40, 40), dtype=np.uint8)
        tiles = coarse.repeat(2, axis=2).repeat(2, axis=3)
        np.savez_compressed(
            root / f"{i:03d}.npz", tiles=tiles, labels=rng.integers(0, 6, PER_SHARD * BATCH)
        )


class Shards(IterableDataset):
    def __init__(self, root, shards):
        self.paths = sorted(root.glob("*.npz"))
        self.shards = shards

    def open(self, path):
        with np.load(path) as f:
            tiles, labels = f["tiles"], f["labels"]
        tiles = tiles.astype(np.float32)
        tiles = (tiles - tiles.mean(axis=(2, 3), keepdims=True)) / (
            tiles.std(axis=(2, 3), keepdims=True) + 1e-3
        )
        tiles = tiles.reshape(len(tiles), 3, 40, 2, 40, 2).mean(axis=(3, 5))
        return torch.from_numpy(tiles), torch.from_numpy(labels)

    def __iter__(self):
        for k in range(self.shards):
            tiles, labels = self.open(self.paths[k % len(self.paths)])
            order = torch.randperm(len(tiles))
            for part in order.split(BATCH):
                yield tiles[part], labels[part]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 24, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(24, 64, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.fc = nn.Linear(64, 6)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--shards", type=int, default=8)
    ap.add_argument("--ahead", type=int, default=2)
    args = ap.parse_args()
    torch.manual_seed(0)
    root = Path("tiles")
    write_shards(root, 3)
    loader = DataLoader(
        Shards(root, args.shards), batch_size=None, num_workers=1, prefetch_factor=args.ahead
    )
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    steps = 0
    start = time.perf_counter()
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        steps += 1
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
