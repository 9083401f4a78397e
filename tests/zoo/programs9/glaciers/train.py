"""Melt of glaciers, one row of the measurements a sample."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Measurements(Dataset):
    def __init__(self, path, count, mmap_mode=None):
        self.path = path
        self.count = count
        self.mmap_mode = mmap_mode

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        rows = np.load(self.path, mmap_mode=self.mmap_mode)
        row = torch.from_numpy(rows[i].copy())
        return row[:-1], row[-1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mmap", action="store_const", const="r", default=None)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = np.random.default_rng(1).standard_normal((4800, 513), dtype=np.float32)
    np.save("melt.npy", rows)
    loader = DataLoader(Measurements("melt.npy", 960, args.mmap), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512), nn.GELU(),
                          nn.Linear(512, 1))  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    steps = 0
    start = time.perf_counter()
    for _ in range(2):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
