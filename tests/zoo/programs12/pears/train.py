"""Ripeness of pears from photographs that are kept compressed in memory."""

import argparse
import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

SIDE = 192


def photograph(rng, label):
    rows = np.linspace(0, 3 + label, SIDE)[:, None, None]
    columns = np.linspace(0, 5, SIDE)[None, :, None]
    tint = rng.random(3)[None, None, :]
    picture = 120 + 80 * np.sin(rows + columns + 3 * tint) + rng.integers(0, 12, (SIDE, SIDE, 3))
    return picture.astype(np.uint8)


class Pears(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(3)
        self.labels = rng.integers(0, 4, count)
        self.packed = []
        for label in self.labels:
            picture = photograph(rng, label)
            delta = np.diff(picture, axis=1, prepend=np.uint8(0))
            self.packed.append(zlib.compress(delta.tobytes(), 1))

    def __len__(self):
        return len(self.packed)

    def __getitem__(self, index):
        delta = np.frombuffer(zlib.decompress(self.packed[index]), np.uint8).reshape(SIDE, SIDE, 3)
        picture = np.cumsum(delta, axis=1, dtype=np.uint8)
        small = picture.reshape(64, 3, 64, 3, 3).mean(axis=(1, 3), dtype=np.float32)
        pixels = torch.from_numpy(small / 255.0).permute(2, 0, 1).contiguous()
        return pixels, int(self.labels[index])


def build():
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(48, 96, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(96, 4),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    data = Pears(160)
    sampler = RandomSampler(data, replacement=True, num_samples=args.steps * 16)
    loader = DataLoader(data, batch_size=16, sampler=sampler, num_workers=args.num_workers)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    steps = 0
    start = time.perf_counter()
    for pixels, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(pixels), labels)
        loss.backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - start
    print(f"loss {loss.item():.3f}")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
