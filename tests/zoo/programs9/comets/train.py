"""Comets in sky surveys; a night's frames are fetched together and then handed out."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Nights(IterableDataset):
    def __init__(self, nights, frames):
        self.nights = nights
        self.frames = frames

    def fetch(self, night):
        time.sleep(0.25)
        g = torch.Generator().manual_seed(night)
        return torch.randn(self.frames, 1, 24, 24, generator=g)

    def __iter__(self):
        for night in range(self.nights):
            for i, frame in enumerate(self.fetch(night)):
                yield frame, i % 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefetch", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(Nights(8, 320), batch_size=16, num_workers=1, prefetch_factor=args.prefetch)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(),
        nn.Conv2d(64, 64, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 2),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps = 0
    start = time.perf_counter()
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
