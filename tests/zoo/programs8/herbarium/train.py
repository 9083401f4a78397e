"""Classify scanned herbarium sheets by family."""

import argparse
import os
import time

import numpy as np
import torch
import torch.nn as nn
from PIL import Image
from torch.utils.data import DataLoader, Dataset

FAMILIES = 6


def make_sheets(root, count, side):
    """Scan some sheets: one JPEG each, the family in the file's name."""
    os.makedirs(root, exist_ok=True)
    rng = np.random.default_rng(7)
    for i in range(count):
        family = i % FAMILIES
        coarse = rng.integers(40, 215, (24, 24, 3), dtype=np.uint8)
        coarse[..., family % 3] //= 1 + family // 3
        image = Image.fromarray(coarse).resize((side, side), Image.BICUBIC)
        image.save(os.path.join(root, f"{i:04d}_{family}.jpg"), quality=88)


class Sheets(Dataset):
    def __init__(self, root, size=64, thumbs=None):
        self.size = size
        self.files = sorted(os.path.join(root, name) for name in os.listdir(root))
        if thumbs is not None:
            os.makedirs(thumbs, exist_ok=True)
            small = []
            for file in self.files:
                target = os.path.join(thumbs, os.path.basename(file))
                Image.open(file).convert("RGB").resize((size, size), Image.BILINEAR).save(target)
                small.append(target)
            self.files = small

    def __len__(self):
        return len(self.files)

    def load(self, file):
        image = Image.open(file).convert("RGB")
        if image.size != (self.size, self.size):
            image = image.resize((self.size, self.size), Image.BILINEAR)
        return np.asarray(image)

    def __getitem__(self, index):
        file = self.files[index]
        pixels = self.load(file)
        if np.random.rand() < 0.5:
            pixels = pixels[:, ::-1]
        x = torch.from_numpy(pixels.transpose(2, 0, 1).copy()).float().div_(255)
        return x, int(file[-5])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = [], 3
        for out in (12, 24, 48):
            layers += [nn.Conv2d(width, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
            layers += [nn.MaxPool2d(2)]
            width = out
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(width, FAMILIES)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--thumbs", default=None)
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    make_sheets("sheets", 96, 768)
    data = Sheets("sheets", thumbs=args.thumbs)
    loader = DataLoader(
        data,
        batch_size=16,
        shuffle=True,
        num_workers=1,
        persistent_workers=True,
        worker_init_fn=lambda worker: torch.set_num_threads(1),
    )
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        total = torch.zeros(())
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            steps += 1
        print(f"epoch {epoch} loss {total.item() / len(loader):.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
