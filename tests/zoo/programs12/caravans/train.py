"""Tracks of caravans, read from compressed shards."""

import argparse
import bz2
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

BATCHES_PER_SHARD = 10
BATCH = 64
SHAPE = (3, 40, 40)


def write_shards(folder, count):
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    size = (BATCHES_PER_SHARD * BATCH, *SHAPE)
    contents = [
        bz2.compress(rng.integers(0, 16, size, dtype=np.uint8).tobytes(), 1) for _ in range(2)
    ]
    paths = []
    for number in range(count):
        path = folder / f"shard-{number:03d}.bz2"
        path.write_bytes(contents[number % 2])
        paths.append(path)
    return paths


class Shards(IterableDataset):
    def __init__(self, paths):
        self.paths = paths

    def read(self, path):
        raw = bz2.decompress(path.read_bytes())
        return np.frombuffer(raw, np.uint8).reshape(-1, BATCH, *SHAPE)

    def __iter__(self):
        for path in self.paths:
            for block in self.read(path):
                pixels = torch.from_numpy(block.astype(np.float32)) / 16.0
                yield pixels, torch.from_numpy(block[:, 0, 0, 0].astype(np.int64))


def build():
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(24, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(3200, 16),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ahead", type=int, default=1, help="batches that a worker keeps ready")
    parser.add_argument("--shards", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    paths = write_shards(Path("shards"), args.shards)
    loader = DataLoader(Shards(paths), batch_size=None, num_workers=1, prefetch_factor=args.ahead)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    steps = 0
    start = time.perf_counter()
    for pixels, labels in loader:
        loss = nn.functional.cross_entropy(model(pixels), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - start
    print(f"loss {loss.item():.3f}")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
