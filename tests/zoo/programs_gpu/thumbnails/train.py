"""Classify small pictures that are drawn on the fly."""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Thumbnails(Dataset[tuple[torch.Tensor, int]]):
    """Discs and rings with noise, blurred a little."""

    def __init__(self, count: int) -> None:
        self.count = count
        axis = np.arange(96)
        self.y, self.x = np.meshgrid(axis, axis, indexing="ij")

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        rng = np.random.default_rng(index)
        image = rng.normal(0, 0.2, (3, 96, 96))
        label = index % 2
        for _ in range(3):
            cy, cx, radius = rng.uniform(20, 76, 3)
            distance = np.hypot(self.y - cy, self.x - cx)
            shape = distance < radius / 2 if label else abs(distance - radius / 2) < 3
            image[rng.integers(3)] += shape
        image = (image + np.roll(image, 1, 1) + np.roll(image, 1, 2)) / 3
        return torch.from_numpy(image.astype(np.float32)), label


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batches", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    loader = DataLoader(
        Thumbnails(64 * args.batches),
        batch_size=64,
        shuffle=True,
        num_workers=args.workers,
        pin_memory=True,
    )
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.Conv2d(64, 128, 3, 2, 1), nn.BatchNorm2d(128), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 2),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    begin = time.perf_counter()
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.4f}")
    print(f"trained {args.batches} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
