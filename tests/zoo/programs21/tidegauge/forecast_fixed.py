"""Forecast the water level at a gauge for the coming day from the last week."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

HOUR = 2 * np.pi
PERIODS = {"M2": 12.42, "S2": 12.0, "N2": 12.66, "K1": 23.93, "O1": 25.82}


def make_level(hours, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    level = np.zeros(hours)
    for period in PERIODS.values():
        level += rng.uniform(0.2, 1.5) * np.sin(HOUR * t / period + rng.uniform(0, 6.28))
    surge = np.convolve(rng.normal(0, 1, hours + 47), np.hanning(48) / 12, mode="valid")
    wind = np.convolve(rng.normal(0, 1, hours + 11), np.ones(12) / 12, mode="valid")
    return np.stack([level + surge + 0.3 * wind, wind], 1).astype(np.float32)


class Windows(Dataset):
    """Sliding windows with the astronomical phases of every hour as further inputs."""

    def __init__(self, series, past=168, ahead=24):
        self.series = series
        self.past = past
        self.ahead = ahead
        self.periods = np.array(list(PERIODS.values()))

    def __len__(self):
        return len(self.series) - self.past - self.ahead + 1

    def __getitem__(self, i):
        window = self.series[i : i + self.past]
        target = self.series[i + self.past : i + self.past + self.ahead, 0]
        phase = HOUR * np.arange(i, i + self.past)[:, None] / self.periods
        mean, std = window.mean(0), window.std(0) + 1e-3
        inputs = np.concatenate([(window - mean) / std, np.sin(phase), np.cos(phase)], 1)
        return (
            torch.from_numpy(inputs.T.astype(np.float32)),
            torch.from_numpy((target - mean[0]) / std[0]),
        )


class Residual(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation),
            nn.GELU(),
            nn.Conv1d(width, width, 1),
        )

    def forward(self, x):
        return x + self.net(x)


class Forecaster(nn.Module):
    def __init__(self, inputs, width, past, ahead):
        super().__init__()
        self.stem = nn.Conv1d(inputs, width, 1)
        self.blocks = nn.Sequential(*[Residual(width, 2**k) for k in range(4)])
        self.head = nn.Linear(width * 7, ahead)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        days = x.unflatten(2, (7, -1)).mean(3)
        return self.head(days.flatten(1))


def run_epoch(model, loader, optimizer, loss_fn):
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=int, default=24 * 365)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--per-epoch", type=int, default=96)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    dataset = Windows(make_level(args.hours, seed=5))
    sampler = RandomSampler(dataset, num_samples=args.per_epoch)
    loader = DataLoader(
        dataset, args.batch_size, sampler=sampler, num_workers=2, persistent_workers=True
    )
    inputs = 2 + 2 * len(PERIODS)
    model = Forecaster(inputs, args.width, dataset.past, dataset.ahead)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.93)
    loss_fn = nn.HuberLoss()

    steps = 0
    start = time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        losses = run_epoch(model, loader, optimizer, loss_fn)
        schedule.step()
        steps += len(losses)
        if epoch % 10 == 0:
            print(f"epoch {epoch:2d}  loss {np.mean(losses):.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
