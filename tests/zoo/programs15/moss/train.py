# lichen / moss species from field photos (crops), baseline for the workshop paper
import argparse
import random
import time

import numpy as np
import torch
import torch.nn as nn
from PIL import Image, ImageEnhance
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
torch.set_num_threads(1)


class FieldPhotos(Dataset):
    def __init__(self, n=800):
        rng = np.random.default_rng(0)
        self.photos = [rng.integers(0, 255, (144, 144, 3), dtype=np.uint8) for _ in range(n)]
        self.labels = rng.integers(0, 12, n)

    def __len__(self):
        return len(self.photos)

    def __getitem__(self, i):
        img = Image.fromarray(self.photos[i])
        img = img.rotate(random.uniform(-15, 15), resample=Image.BILINEAR)
        left, top = random.randint(0, 12), random.randint(0, 12)
        img = img.crop((left, top, left + 128, top + 128)).resize((64, 64), Image.BICUBIC)
        img = ImageEnhance.Color(img).enhance(random.uniform(0.8, 1.2))
        img = ImageEnhance.Contrast(img).enhance(random.uniform(0.8, 1.2))
        img = ImageEnhance.Sharpness(img).enhance(random.uniform(0.8, 1.2))
        x = np.asarray(img, dtype=np.float32) / 255.0
        x = (x - 0.45) / 0.22
        return torch.from_numpy(x.transpose(2, 0, 1).copy()), int(self.labels[i])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(24, 48, 3, padding=1),
            nn.BatchNorm2d(48),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.head = nn.Linear(48, 12)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--workers", type=int, default=0)
    p.add_argument("--epochs", type=int, default=4)
    args = p.parse_args()
    loader = DataLoader(
        FieldPhotos(),
        batch_size=32,
        shuffle=True,
        drop_last=True,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
    )
    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for x, y in loader:
            opt.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            opt.step()
            steps += 1
        print(f"epoch {epoch} loss {loss.item():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
