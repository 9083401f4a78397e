"""Species of moss from close-ups."""

import argparse
import math
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    epochs: int = 2
    batch: int = 12
    size: int = 96
    photos: int = 1200
    species: int = 15
    lr: float = 0.03
    augment_in: str = "loop"


def warp(images, generator):
    """Rotate, scale and blur a batch at random."""
    n = len(images)
    angle = (torch.rand(n, generator=generator) - 0.5) * math.pi / 3
    scale = 0.8 + 0.4 * torch.rand(n, generator=generator)
    theta = torch.zeros(n, 2, 3)
    theta[:, 0, 0] = theta[:, 1, 1] = torch.cos(angle) * scale
    theta[:, 0, 1] = torch.sin(angle) * scale
    theta[:, 1, 0] = -theta[:, 0, 1]
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)
    images = F.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
    taps = torch.tensor([1.0, 4.0, 6.0, 4.0, 1.0]) / 16
    channels = images.shape[1]
    kernel = torch.outer(taps, taps).expand(channels, 1, 5, 5).contiguous()
    soft = F.conv2d(images, kernel, padding=2, groups=channels)
    images = torch.lerp(images, soft, torch.rand(n, 1, 1, 1, generator=generator))
    return images + 0.02 * torch.randn(images.shape, generator=generator)


class Photos(Dataset):
    def __init__(self, config):
        g = torch.Generator().manual_seed(21)
        self.images = torch.rand(200, 3, config.size, config.size, generator=g)
        self.labels = torch.randint(0, config.species, (config.photos,), generator=g)
        self.augment = config.augment_in == "dataset"

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i % len(self.images)]
        if self.augment:
            image = warp(image[None], torch.Generator().manual_seed(i))[0]
        return image, self.labels[i]


class Trainer:
    def __init__(self, config):
        self.config = config
        self.loader = DataLoader(
            Photos(config), config.batch, shuffle=True, num_workers=2, persistent_workers=True
        )
        self.model = nn.Sequential(
            nn.Conv2d(3, 24, 4, stride=4),
            nn.ReLU(),
            nn.Conv2d(24, 40, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(40, 40, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveMaxPool2d(2),
            nn.Flatten(),
            nn.Linear(160, config.species),
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), config.lr, momentum=0.9)
        self.generator = torch.Generator().manual_seed(0)
        self.step = 0

    def prepare(self, images):
        if self.config.augment_in == "loop":
            images = warp(images, self.generator)
        return images

    def train_step(self, images, labels):
        images = self.prepare(images)
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss

    def run(self):
        for epoch in range(self.config.epochs):
            for images, labels in self.loader:
                loss = self.train_step(images, labels)
            print(f"epoch {epoch + 1}/{self.config.epochs}: {loss.item():.4f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--augment-in", default="loop", choices=["loop", "dataset"])
    cli.add_argument("--epochs", type=int, default=2)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    trainer = Trainer(Config(**vars(cli.parse_args())))
    t = time.perf_counter()
    trainer.run()
    print(f"trained {trainer.step} steps in {time.perf_counter() - t:.3f} s")
