"""Tile classification: photographs of tiles, varied at random."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate

SIDE = 40


class Tiles(Dataset):
    def __init__(self, count=1920, seed=21):
        rng = np.random.default_rng(seed)
        self.images = rng.integers(0, 256, (count, SIDE, SIDE, 3), dtype=np.uint8)
        self.labels = rng.integers(0, 10, count)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Augment:
    """Small rotations, a colour cast and noise, one image after the other."""

    def __init__(self, seed=8):
        self.rng = np.random.default_rng(seed)
        grid = np.mgrid[0:SIDE, 0:SIDE].reshape(2, -1) - (SIDE - 1) / 2
        self.grid = grid

    def rotate(self, image):
        angle = self.rng.uniform(-0.4, 0.4)
        c, s = np.cos(angle), np.sin(angle)
        source = np.array([[c, -s], [s, c]]) @ self.grid + (SIDE - 1) / 2
        low = np.floor(source).astype(np.int64)
        fraction = source - low
        pixels = np.zeros((SIDE * SIDE, 3))
        for dy in (0, 1):
            for dx in (0, 1):
                y = np.clip(low[0] + dy, 0, SIDE - 1)
                x = np.clip(low[1] + dx, 0, SIDE - 1)
                wy = fraction[0] if dy else 1 - fraction[0]
                wx = fraction[1] if dx else 1 - fraction[1]
                pixels += image[y, x] * (wy * wx)[:, None]
        return pixels.reshape(SIDE, SIDE, 3)

    def __call__(self, images):
        out = np.empty((len(images), 3, SIDE, SIDE), np.float32)
        for i, image in enumerate(images.numpy()):
            varied = self.rotate(image) * self.rng.uniform(0.8, 1.2, 3)
            varied += self.rng.normal(0, 4, varied.shape)
            out[i] = varied.transpose(2, 0, 1)
        return torch.from_numpy((out - 127.5) / 64.0)


class AugmentingCollate:
    def __init__(self, augment):
        self.augment = augment

    def __call__(self, items):
        images, labels = default_collate(items)
        return self.augment(images), labels


def build_model():
    return nn.Sequential(
        nn.Conv2d(3, 24, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(24, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--augment", choices=["loop", "collate"], default="loop")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(21)

    augment = Augment()
    in_collate = args.augment == "collate"
    loader = DataLoader(
        Tiles(),
        batch_size=32,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
        prefetch_factor=4,
        collate_fn=AugmentingCollate(augment) if in_collate else None,
    )
    model = build_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for images, labels in loader:
            if not in_collate:
                images = augment(images)
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch + 1}: {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
