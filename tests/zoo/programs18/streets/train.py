"""Semantic segmentation of street scenes, masks stored as RGB images."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

rng = np.random.default_rng(7)
PALETTE = rng.choice(256 * 256 * 256, size=24, replace=False)
PALETTE = np.stack([PALETTE >> 16, (PALETTE >> 8) & 255, PALETTE & 255], axis=1).astype(np.uint8)


def by_color(mask):
    label = np.zeros(mask.shape[:2], dtype=np.int64)
    for k, color in enumerate(PALETTE):
        label[np.all(mask == color, axis=-1)] = k
    return label


KEYS = (PALETTE.astype(np.int64) * [65536, 256, 1]).sum(axis=1)
TABLE = np.zeros(1 << 24, dtype=np.uint8)
TABLE[KEYS] = np.arange(len(KEYS))


def by_table(mask):
    m = mask.astype(np.int32)
    return TABLE[(m[..., 0] << 16) | (m[..., 1] << 8) | m[..., 2]].astype(np.int64)


class Streets(Dataset):
    def __init__(self, n, size, encode):
        self.encode = encode
        coarse = rng.integers(0, len(PALETTE), size=(n, size // 8, size // 8))
        labels = coarse.repeat(8, axis=1).repeat(8, axis=2)
        self.masks = PALETTE[labels]
        noise = rng.integers(0, 40, size=self.masks.shape, dtype=np.uint8)
        self.images = self.masks // 2 + noise

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = torch.from_numpy(self.images[i]).permute(2, 0, 1).float().div_(255)
        return image, torch.from_numpy(self.encode(self.masks[i]))


def net(classes):
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, classes, 1),
        nn.Upsample(scale_factor=2),
    )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--masks", choices=["color", "table"], default="color")
    p.add_argument("--epochs", type=int, default=3)
    args = p.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    data = Streets(240, 128, by_color if args.masks == "color" else by_table)
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model = net(len(PALETTE))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        total = 0.0
        for image, label in loader:
            optimizer.zero_grad()
            loss = criterion(model(image), label)
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        print(f"epoch {epoch}: {total / len(loader):.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
