"""Radio masts on maps. Started with others on one machine, so it takes its own cores."""

import argparse
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Maps(Dataset):
    def __init__(self, count):
        self.maps = np.random.default_rng(0).random((64, 160, 160))
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        plane = np.fft.fft2(self.maps[i % 64])
        plane[24:-24] = 0
        smooth = np.fft.ifft2(plane).real[::5, ::5]
        return torch.from_numpy(smooth.astype(np.float32))[None], i % 3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cores", type=int, default=1)
    args = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(Maps(3200), batch_size=32, num_workers=1)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 24, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 3),
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
