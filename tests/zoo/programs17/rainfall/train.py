"""Precipitation nowcasting: three hourly maps in, the next one out. One file per station month."""

import argparse
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
HOURS, SIZE = 1200, 40


def write_archive(folder, months):
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(3)
    for m in range(months):
        np.save(
            os.path.join(folder, f"month_{m:02d}.npy"),
            rng.gamma(0.5, 1.0, (HOURS, SIZE, SIZE)).astype(np.float32),
        )


class RadarMaps(Dataset):
    def __init__(self, folder, mode):
        self.files = sorted(os.path.join(folder, f) for f in os.listdir(folder))
        self.mode = mode

    def __len__(self):
        return len(self.files) * (HOURS - 3)

    def read(self, path):
        return np.load(path, mmap_mode=self.mode)

    def __getitem__(self, i):
        month, hour = divmod(i, HOURS - 3)
        window = np.array(self.read(self.files[month])[hour : hour + 4])
        return torch.from_numpy(window[:3]), torch.from_numpy(window[3:])


class Nowcast(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, c, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(c, c, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(c, c, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(c, 1, 1),
        )

    def forward(self, x):
        return self.body(x) + x[:, -1:]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=90)
    ap.add_argument("--mmap", default=None)
    args = ap.parse_args()
    torch.manual_seed(0)
    write_archive("archive", months=6)
    loader = DataLoader(
        RadarMaps("archive", args.mmap), batch_size=16, shuffle=True, drop_last=True
    )
    model = Nowcast()
    optim = torch.optim.Adam(model.parameters(), lr=1e-3)
    began = time.perf_counter()
    for step, (x, y) in enumerate(loader, 1):
        loss = nn.functional.mse_loss(model(x), y)
        optim.zero_grad()
        loss.backward()
        optim.step()
        if step == args.steps:
            break
    print(f"mse {loss.item():.4f}")
    print(f"trained {step} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
