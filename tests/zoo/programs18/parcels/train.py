"""Parcel photos -> damage class. Photos are kept as jpegs, the way the camera delivers them."""

import argparse
import io
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset


def take_photos(count, side):
    rng = np.random.default_rng(3)
    photos = []
    for _ in range(count):
        small = rng.integers(0, 255, (side // 16, side // 16, 3), dtype=np.uint8)
        image = Image.fromarray(small).resize((side, side), Image.BICUBIC)
        out = io.BytesIO()
        image.save(out, "JPEG", quality=92)
        photos.append(out.getvalue())
    return photos, rng.integers(0, 5, count)


class Photos(Dataset):
    def __init__(self, photos, labels):
        self.photos, self.labels = photos, labels

    def __len__(self):
        return len(self.photos)

    def __getitem__(self, index):
        image = Image.open(io.BytesIO(self.photos[index])).convert("RGB")
        image = image.resize((64, 64), Image.BILINEAR)
        pixels = torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1)
        return pixels.float() / 255 - 0.5, int(self.labels[index])


class DamageNet(nn.Module):
    def __init__(self, width=28):
        super().__init__()
        self.c1 = nn.Conv2d(3, width, 3, padding=1)
        self.c2 = nn.Conv2d(width, width, 3, padding=1, stride=2)
        self.c3 = nn.Conv2d(width, 2 * width, 3, padding=1, stride=2)
        self.head = nn.Linear(2 * width, 5)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.relu(self.c2(x))
        x = F.relu(self.c3(x))
        return self.head(x.mean(dim=(2, 3)))


def run(workers: int, epochs: int) -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    photos, labels = take_photos(480, 480)
    options = {"persistent_workers": True, "prefetch_factor": 4} if workers else {}
    loader = DataLoader(
        Photos(photos, labels), batch_size=16, shuffle=True, num_workers=workers, **options
    )
    model = DamageNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    count, start = 0, time.perf_counter()
    for epoch in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            count += 1
        print("epoch", epoch, "loss", round(loss.item(), 4))
    print(f"trained {count} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    run(**vars(parser.parse_args()))
