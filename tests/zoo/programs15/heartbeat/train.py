"""Arrhythmia classification from single-lead ECG strips."""

import argparse
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(1)
torch.set_num_threads(1)


def baseline_window(x, half):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] - x[max(0, i - half) : i + half + 1].mean()
    return out


def baseline_cumsum(x, half):
    c = np.concatenate([[0.0], np.cumsum(x, dtype=np.float64)])
    i = np.arange(len(x))
    lo, hi = np.maximum(0, i - half), np.minimum(len(x), i + half + 1)
    return (x - (c[hi] - c[lo]) / (hi - lo)).astype(np.float32)


BASELINE = {"window": baseline_window, "cumsum": baseline_cumsum}


class Strips(Dataset):
    def __init__(self, n, baseline):
        rng = np.random.default_rng(1)
        t = np.linspace(0, 8, 720, dtype=np.float32)
        self.x = np.stack(
            [
                np.sin(6 * t * rng.uniform(0.8, 1.3)) ** 15 + 0.3 * np.sin(t * rng.uniform(0.1, 1))
                for _ in range(n)
            ]
        ).astype(np.float32)
        self.y = rng.integers(0, 5, n)
        self.baseline = BASELINE[baseline]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.baseline(self.x[i], 90)
        x = x / (np.abs(x).max() + 1e-6)
        return torch.from_numpy(x).unsqueeze(0), int(self.y[i])


def conv(i, o, s):
    return nn.Sequential(nn.Conv1d(i, o, 9, stride=s, padding=4), nn.BatchNorm1d(o), nn.ReLU())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--baseline", choices=sorted(BASELINE), default="window")
    args = parser.parse_args()
    train_set = Strips(640, args.baseline)
    loader = DataLoader(
        train_set, batch_size=32, shuffle=True, num_workers=2, persistent_workers=True
    )
    model = nn.Sequential(
        conv(1, 32, 2),
        conv(32, 40, 1),
        conv(40, 64, 2),
        conv(64, 96, 2),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(96, 5),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = nn.CrossEntropyLoss()
    n = 0
    t0 = time.perf_counter()
    for epoch in range(4):
        total = 0.0
        for x, y in loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            n += 1
        print("epoch", epoch, "loss", round(total / len(loader), 4))
    print(f"trained {n} steps in {time.perf_counter() - t0:.3f} s")


if __name__ == "__main__":
    main()
