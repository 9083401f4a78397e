"""Forecasting the output of turbines from shards of measurements in cold storage."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

WINDOW = 96
CHANNELS = 16


class ColdStorage:
    """Hands out a month of measurements at a time; the first byte takes a while."""

    def __init__(self, first_byte_s=0.42):
        self.first_byte_s = first_byte_s

    def read(self, month):
        time.sleep(self.first_byte_s)
        rng = np.random.default_rng(month)
        series = rng.standard_normal((1600, CHANNELS), dtype=np.float32)
        return np.cumsum(series, axis=0) * 0.05


class Windows(IterableDataset):
    def __init__(self, storage, months, per_month, batch):
        self.storage = storage
        self.months = months
        self.per_month = per_month
        self.batch = batch

    def __iter__(self):
        for month in range(self.months):
            series = torch.from_numpy(self.storage.read(month))
            windows = series.unfold(0, WINDOW + 1, 1)
            order = torch.randperm(len(windows))
            for k in range(self.per_month):
                chosen = windows[order[k * self.batch : (k + 1) * self.batch]]
                yield chosen[:, :, :-1].contiguous(), chosen[:, 0, -1].contiguous()


class Forecaster(nn.Module):
    def __init__(self, width=80):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(CHANNELS, width, 5, padding=2),
            nn.GELU(),
            nn.Conv1d(width, width, 5, padding=4, dilation=2),
            nn.GELU(),
            nn.Conv1d(width, width, 5, padding=8, dilation=4),
            nn.GELU(),
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.layers(x)[:, :, -1]).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--months", type=int, default=7)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = Windows(ColdStorage(), args.months, per_month=24, batch=48)
    loader = DataLoader(data, batch_size=None, num_workers=1, prefetch_factor=args.prefetch)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = 0
    begin = time.perf_counter()
    for history, target in loader:
        loss = nn.functional.huber_loss(model(history), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.4f}")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
