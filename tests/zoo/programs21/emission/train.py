"""Estimate redshift and line width from noisy galaxy spectra (chapter 3, first try)."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

N_PIX = 320
LINES = {"OII": 0.372, "Hb": 0.486, "OIII": 0.500, "Ha": 0.656, "SII": 0.672}
WAVE = np.linspace(0.36, 0.98, N_PIX)


def simulate_catalogue(n, seed):
    rng = np.random.default_rng(seed)
    z = rng.uniform(0.0, 0.4, n)
    sigma = rng.uniform(0.002, 0.006, n)
    slope = rng.normal(0, 1.5, n)
    flux = 2.0 + slope[:, None] * (WAVE - 0.67) + 0.3 * np.sin(9 * WAVE + z[:, None] * 5)
    for rest in LINES.values():
        strength = rng.gamma(2.0, 0.8, n)
        centre = rest * (1 + z)
        profile = np.exp(-0.5 * ((WAVE - centre[:, None]) / sigma[:, None]) ** 2)
        flux = flux + strength[:, None] * profile
    targets = np.stack([z / 0.4, sigma / 0.006], 1)
    return flux.astype(np.float32), targets.astype(np.float32)


def continuum(flux, half=20, every=4):
    """Running median of the spectrum between knots; lines are narrower than the window."""
    padded = np.pad(flux, half, mode="edge")
    knots = np.arange(0, len(flux), every)
    level = np.empty(len(knots))
    for k, i in enumerate(knots):
        level[k] = np.median(padded[i : i + 2 * half + 1])
    return np.interp(np.arange(len(flux)), knots, level).astype(np.float32)


class Spectra(Dataset):
    def __init__(self, flux, targets, snr=15.0):
        self.flux = flux
        self.targets = targets
        self.snr = snr

    def __len__(self):
        return len(self.flux)

    def __getitem__(self, i):
        rng = np.random.default_rng(np.random.randint(2**31))
        flux = self.flux[i] * rng.uniform(0.7, 1.3)
        flux = flux + rng.normal(0, 1 / self.snr, N_PIX).astype(np.float32) * flux.mean()
        flux = flux - continuum(flux.astype(np.float32))
        flux = flux / (np.abs(flux).max() + 1e-6)
        return torch.from_numpy(flux)[None].float(), torch.from_numpy(self.targets[i])


class Block(nn.Module):
    def __init__(self, c_in, c_out, k):
        super().__init__()
        self.conv = nn.Conv1d(c_in, c_out, k, padding=k // 2)
        self.bn = nn.BatchNorm1d(c_out)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


class SpecNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(
            Block(1, width, 7),
            Block(width, width, 7),
            nn.MaxPool1d(2),
            Block(width, 2 * width, 5),
            Block(2 * width, 2 * width, 5),
            nn.MaxPool1d(4),
        )
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(2 * width * (N_PIX // 8), 64), nn.ReLU(), nn.Linear(64, 2)
        )

    def forward(self, x):
        return self.head(self.body(x))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--lr", type=float, default=1e-3)
    args = p.parse_args()

    torch.manual_seed(0)
    np.random.seed(0)
    torch.set_num_threads(1)

    flux, targets = simulate_catalogue(960, seed=42)
    loader = DataLoader(
        Spectra(flux, targets),
        batch_size=args.batch,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
    )
    net = SpecNet()
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    loss_fn = nn.SmoothL1Loss()

    n = 0
    t0 = time.perf_counter()
    for epoch in range(args.epochs):
        total = 0.0
        for x, y in loader:
            opt.zero_grad()
            loss = loss_fn(net(x), y)
            loss.backward()
            opt.step()
            total += loss.item()
            n += 1
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")
    print(f"trained {n} steps in {time.perf_counter() - t0:.3f} s")


if __name__ == "__main__":
    main()
