"""Tulip colours: hue shifted at random, then a small network."""

import argparse
import colorsys
import random
import time

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


def shift_by_pixel(image, amount):
    out = Image.new("RGB", image.size)
    pixels = []
    for r, g, b in image.getdata():
        h, s, v = colorsys.rgb_to_hsv(r / 255, g / 255, b / 255)
        r, g, b = colorsys.hsv_to_rgb((h + amount) % 1.0, s, v)
        pixels.append((int(r * 255), int(g * 255), int(b * 255)))
    out.putdata(pixels)
    return out


def shift_by_plane(image, amount):
    h, s, v = image.convert("HSV").split()
    h = h.point(lambda value: (value + int(amount * 255)) % 256)
    return Image.merge("HSV", (h, s, v)).convert("RGB")


class Tulips(Dataset):
    def __init__(self, count, shift):
        rng = np.random.default_rng(0)
        self.images = [
            Image.fromarray(rng.integers(0, 255, (40, 40, 3), dtype=np.uint8)) for _ in range(50)
        ]
        self.labels = rng.integers(0, 6, count)
        self.shift = shift

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.shift(self.images[i % 50], random.uniform(-0.1, 0.1))
        x = np.asarray(image, dtype=np.float32).transpose(2, 0, 1) / 255
        return torch.from_numpy(x), int(self.labels[i])


parser = argparse.ArgumentParser()
parser.add_argument("--hue", choices=["pixel", "plane"], default="pixel")
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)
shift = shift_by_pixel if args.hue == "pixel" else shift_by_plane
loader = DataLoader(Tulips(1280, shift), batch_size=16, shuffle=True, num_workers=2)
net = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
    nn.Flatten(), nn.Linear(64, 6),
)  # fmt: skip
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
steps = 0
start = time.perf_counter()
for x, y in loader:
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    steps += 1
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
