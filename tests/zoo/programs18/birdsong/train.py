"""Bird calls: spectrogram images in random time stretches, then a small network."""

import argparse
import random
import time

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE, VIEWS = 56, 4


def view(spectrogram):
    """Random crop in time, resampled to a square, and a small rotation."""
    height, width = spectrogram.shape
    wide = random.randint(width // 2, width)
    left = random.randint(0, width - wide)
    image = Image.fromarray(np.ascontiguousarray(spectrogram[:, left : left + wide]))
    image = image.resize((SIDE, SIDE), Image.LANCZOS)
    image = image.rotate(random.uniform(-3, 3), resample=Image.BICUBIC)
    return torch.from_numpy(np.array(image))


def stretch(spectrogram):
    return torch.stack([view(spectrogram) for _ in range(VIEWS)])


class Calls(Dataset):
    def __init__(self, count, transform=None):
        rng = np.random.default_rng(0)
        self.calls = rng.random((count, 96, 400), dtype=np.float32)
        self.species = rng.integers(0, 20, count)
        self.transform = transform

    def __len__(self):
        return len(self.calls)

    def __getitem__(self, i):
        call = self.calls[i]
        return (self.transform(call) if self.transform else call), self.species[i]


class CallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(VIEWS, 32, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 48, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.classify = nn.Linear(48, 20)

    def forward(self, x):
        return self.classify(self.features(x).flatten(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stretch", choices=["loop", "dataset"], default="loop")
    args = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    early = args.stretch == "dataset"
    data = Calls(480, stretch if early else None)
    loader = DataLoader(
        data, batch_size=16, shuffle=True, num_workers=1, persistent_workers=True, prefetch_factor=4
    )
    net = CallNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    start = time.perf_counter()
    steps = 0
    for epoch in range(4):
        for calls, species in loader:
            if not early:
                calls = torch.stack([stretch(call.numpy()) for call in calls])
            loss = nn.functional.cross_entropy(net(calls), species)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch} loss {loss.item():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
