"""Fine-grained orchid classifier, trained with Accelerate."""

import argparse
import time

import numpy as np
import torch
import torch.nn as nn
from accelerate import Accelerator
from PIL import Image, ImageEnhance, ImageFilter
from torch.utils.data import DataLoader, Dataset


class Orchids(Dataset):
    """Photos in memory; flipped, turned, recoloured and blurred anew each time."""

    def __init__(self, count=256, side=128):
        rng = np.random.default_rng(0)
        self.photos = [
            Image.fromarray(rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)).resize((side, side))
            for _ in range(count)
        ]

    def __len__(self):
        return len(self.photos)

    def __getitem__(self, index):
        photo = self.photos[index]
        if np.random.rand() < 0.5:
            photo = photo.transpose(Image.FLIP_LEFT_RIGHT)
        photo = photo.rotate(np.random.uniform(-20, 20), resample=Image.BILINEAR)
        photo = ImageEnhance.Color(photo).enhance(np.random.uniform(0.7, 1.3))
        photo = ImageEnhance.Contrast(photo).enhance(np.random.uniform(0.7, 1.3))
        photo = photo.filter(ImageFilter.GaussianBlur(np.random.uniform(0.1, 1.0)))
        photo = photo.resize((96, 96), Image.BILINEAR)
        array = np.asarray(photo, dtype=np.float32).transpose(2, 0, 1) / 255
        return torch.from_numpy(array), index % 10


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, 2, 1, bias=False), nn.BatchNorm2d(b), nn.SiLU())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_workers", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    model = nn.Sequential(
        block(3, 32), block(32, 64), block(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    model.append(nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    loader = DataLoader(
        Orchids(),
        batch_size=16,
        shuffle=True,
        drop_last=True,
        num_workers=args.num_workers,
        persistent_workers=args.num_workers > 0,
    )
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    start, steps = time.perf_counter(), 0
    for epoch in range(5):
        model.train()
        for images, labels in loader:
            with accelerator.accumulate(model):
                loss = criterion(model(images), labels)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            steps += 1
        accelerator.print(f"epoch {epoch} loss {loss.item():.3f}")
    accelerator.print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
