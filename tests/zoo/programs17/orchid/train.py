"""Flower classifier. Converted from a notebook."""

import argparse
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


def seed_everything(seed=42):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class CFG:
    img = 48
    batch = 24
    classes = 12
    lr = 1e-3


class FlowerDataset(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.images = rng.integers(0, 255, (n, 96, 96, 3), dtype=np.uint8)
        self.labels = rng.integers(0, CFG.classes, n)

    def __len__(self):
        return len(self.images)

    def resized_crop(self, img):
        s = np.random.randint(64, 97)
        y, x = np.random.randint(0, 97 - s, 2)
        rows = y + (np.arange(CFG.img) * s) / CFG.img
        cols = x + (np.arange(CFG.img) * s) / CFG.img
        r0, c0 = rows.astype(int), cols.astype(int)
        r1, c1 = np.minimum(r0 + 1, 95), np.minimum(c0 + 1, 95)
        wr, wc = (rows - r0)[:, None, None], (cols - c0)[None, :, None]
        img = img.astype(np.float32)
        top = img[r0][:, c0] * (1 - wc) + img[r0][:, c1] * wc
        bottom = img[r1][:, c0] * (1 - wc) + img[r1][:, c1] * wc
        return (top * (1 - wr) + bottom * wr).astype(np.float32)

    def jitter(self, img):
        img = img * np.float32(np.random.uniform(0.8, 1.2))
        grey = img.mean(axis=2, keepdims=True)
        img = grey + (img - grey) * np.float32(np.random.uniform(0.7, 1.3))
        return np.clip(img, 0, 255)

    def noise(self, img):
        return img + np.random.normal(0, 4, img.shape).astype(np.float32)

    def normalise(self, img):
        img = img / 255.0
        img = (img - np.float32([0.485, 0.456, 0.406])) / np.float32([0.229, 0.224, 0.225])
        if np.random.rand() < 0.5:
            img = img[:, ::-1]
        return np.ascontiguousarray(img.transpose(2, 0, 1), dtype=np.float32)

    def __getitem__(self, i):
        img = self.resized_crop(self.images[i])
        img = self.jitter(img)
        img = self.noise(img)
        return torch.from_numpy(self.normalise(img)), int(self.labels[i])


def block(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2)
    )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--workers", type=int, default=0)
    a = p.parse_args()
    seed_everything()
    ds = FlowerDataset(a.steps * CFG.batch)
    dl = DataLoader(ds, batch_size=CFG.batch, shuffle=True, num_workers=a.workers)
    model = nn.Sequential(
        block(3, 12),
        block(12, 24),
        block(24, 64),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, CFG.classes),
    )
    opt = torch.optim.Adam(model.parameters(), lr=CFG.lr)
    model.train()
    start = time.perf_counter()
    steps = 0
    for x, y in dl:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        steps += 1
        if steps % 50 == 0:
            print(f"step {steps} loss {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
