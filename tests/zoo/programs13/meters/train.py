"""Electricity meters: predict the next day of every meter from the last four days.

python train.py --heads list
"""

import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

METERS = 120
PAST = 96
AHEAD = 24


def make_series(hours, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)[:, None]
    phase = rng.uniform(0, 2 * np.pi, METERS)
    daily = np.sin(2 * np.pi * t / 24 + phase) * rng.uniform(0.5, 2.0, METERS)
    weekly = np.sin(2 * np.pi * t / 168 + phase) * rng.uniform(0.1, 1.0, METERS)
    noise = rng.normal(0, 0.3, (hours, METERS))
    return torch.tensor(daily + weekly + noise, dtype=torch.float32)


class HeadList(nn.Module):
    """Every meter has a linear forecast of its own."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(inputs, outputs) for _ in range(METERS))

    def forward(self, x):
        out = []
        for i, linear in enumerate(self.linears):
            out.append(linear(x[:, i]))
        return torch.stack(out, 1)


class HeadBank(nn.Module):
    """The same, with the weights of all meters in one tensor."""

    def __init__(self, inputs, outputs):
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(METERS, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(METERS, 1, outputs).uniform_(-bound, bound))

    def forward(self, x):
        return torch.baddbmm(self.bias, x.transpose(0, 1), self.weight).transpose(0, 1)


class Forecast(nn.Module):
    def __init__(self, heads, hidden=192):
        super().__init__()
        self.mix = nn.Sequential(
            nn.Linear(PAST, hidden), nn.GELU(), nn.Dropout(0.1), nn.Linear(hidden, PAST)
        )
        self.norm = nn.LayerNorm(PAST)
        make = HeadList if heads == "list" else HeadBank
        self.season = make(PAST, AHEAD)
        self.trend = make(PAST, AHEAD)

    def forward(self, x):
        trend = F.avg_pool1d(x, 25, stride=1, padding=12, count_include_pad=False)
        season = self.norm(x - trend + self.mix(x - trend))
        return self.season(season) + self.trend(trend)


def batches(series, count, size, generator):
    for _ in range(count):
        begins = torch.randint(0, len(series) - PAST - AHEAD, (size,), generator=generator)
        index = begins[:, None] + torch.arange(PAST + AHEAD)
        window = series[index].transpose(1, 2)
        yield window[..., :PAST], window[..., PAST:]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--heads", choices=["list", "bank"], default="list")
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--steps-per-epoch", type=int, default=50)
    ap.add_argument("--batch-size", type=int, default=16)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--seed", type=int, default=2)
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    train, valid = make_series(3000, args.seed), make_series(600, args.seed + 1)
    model = Forecast(args.heads)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)

    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        model.train()
        seen = []
        for past, ahead in batches(train, args.steps_per_epoch, args.batch_size, generator):
            optimizer.zero_grad(set_to_none=True)
            loss = F.mse_loss(model(past), ahead)
            loss.backward()
            optimizer.step()
            seen.append(loss.detach())
            steps += 1
        model.eval()
        with torch.no_grad():
            error = [F.l1_loss(model(x), y) for x, y in batches(valid, 2, 16, generator)]
        print(
            f"epoch {epoch}: mse {torch.stack(seen).mean():.4f}"
            f"  valid mae {torch.stack(error).mean():.4f}"
        )
    seconds = time.perf_counter() - start
    torch.save(model.state_dict(), "forecast.pt")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
