"""Swallows on wires: pictures are cropped and flipped by a worker."""

import random
import time

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Wires(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(0)
        self.images = [
            Image.fromarray(rng.integers(0, 255, (48, 48, 3), dtype=np.uint8)) for _ in range(100)
        ]
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        image = self.images[i % 100]
        left, top = random.randrange(8), random.randrange(8)
        image = image.crop((left, top, left + 40, top + 40))
        if random.random() < 0.5:
            image = ImageOps.mirror(image)
        pixels = np.asarray(image, dtype=np.float32).transpose(2, 0, 1) / 255
        return torch.from_numpy(pixels), i % 3


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(
        Wires(800), batch_size=16, shuffle=True, num_workers=1, persistent_workers=True
    )
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 48, 3, stride=2), nn.ReLU(),
        nn.Conv2d(48, 64, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 3),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    steps = 0
    start = time.perf_counter()
    for epoch in range(3):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch}: loss {loss.item():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
