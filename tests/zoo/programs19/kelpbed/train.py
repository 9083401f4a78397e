"""Contrastive pretraining on underwater photographs: two views of each picture, one encoder."""

import argparse
import io
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from torch import nn
from torch.utils.data import DataLoader, Dataset


def make_photos(count, size, seed):
    rng = np.random.default_rng(seed)
    photos = []
    for _ in range(count):
        base = rng.integers(0, 256, (size // 8, size // 8, 3), dtype=np.uint8)
        picture = Image.fromarray(base).resize((size, size), Image.BICUBIC)
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=88)
        photos.append(buffer.getvalue())
    return photos


class TwoViews(Dataset):
    def __init__(self, photos, length, size=64):
        self.photos = photos
        self.length = length
        self.size = size

    def __len__(self):
        return self.length

    def crop(self, picture):
        width, height = picture.size
        side = random.randint(int(0.6 * width), width)
        left = random.randint(0, width - side)
        top = random.randint(0, height - side)
        box = (left, top, left + side, top + side)
        return picture.resize((self.size, self.size), Image.BILINEAR, box=box)

    def tint(self, picture):
        picture = ImageEnhance.Color(picture).enhance(random.uniform(0.6, 1.4))
        return ImageEnhance.Contrast(picture).enhance(random.uniform(0.6, 1.4))

    def view(self, picture):
        picture = self.tint(self.crop(picture))
        if random.random() < 0.5:
            picture = ImageOps.mirror(picture)
        picture = picture.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 1.5)))
        pixels = np.asarray(picture, dtype=np.float32) / 127.5 - 1.0
        return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()

    def __getitem__(self, index):
        data = self.photos[index % len(self.photos)]
        picture = Image.open(io.BytesIO(data)).convert("RGB")
        return self.view(picture), self.view(picture)


class Encoder(nn.Module):
    def __init__(self, width=26, out=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(2 * width, out)

    def forward(self, x):
        return F.normalize(self.head(self.body(x)), dim=1)


def nt_xent(a, b, temperature=0.2):
    logits = a @ b.t() / temperature
    target = torch.arange(len(a))
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--steps", type=int, default=72)
    args = parser.parse_args()
    torch.manual_seed(3)
    random.seed(3)
    torch.set_num_threads(1)

    views = TwoViews(make_photos(96, 160, seed=3), args.batch_size * args.steps)
    loader = DataLoader(views, args.batch_size, shuffle=True, num_workers=args.workers)
    encoder = Encoder()
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9)

    total = torch.zeros(())
    begin = time.perf_counter()
    for a, b in loader:
        both = encoder(torch.cat([a, b]))
        loss = nt_xent(both[: len(a)], both[len(a) :])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    seconds = time.perf_counter() - begin
    print(f"mean loss {total.item() / args.steps:.3f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
