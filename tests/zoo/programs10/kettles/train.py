"""Forecasts the next day's load of a small grid from a week of hourly readings."""

import argparse
import time

import numpy as np
import torch
from torch import nn

HOURS = 168
METERS = 8
HORIZON = 24


def make_readings(hours, seed):
    rng = np.random.default_rng(seed)
    clock = np.arange(hours)[:, None]
    daily = np.sin(2 * np.pi * (clock / 24 + rng.random(METERS)))
    weekly = np.sin(2 * np.pi * (clock / 168 + rng.random(METERS)))
    return daily + 0.5 * weekly + 0.2 * rng.normal(size=(hours, METERS))


def make_windows(readings):
    starts = range(len(readings) - HOURS - HORIZON)
    past = np.stack([readings[s : s + HOURS].ravel() for s in starts])
    ahead = np.stack([readings[s + HOURS : s + HOURS + HORIZON, 0] for s in starts])
    return past, ahead


def build_model(width):
    return nn.Sequential(
        nn.Linear(HOURS * METERS, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, HORIZON),
    )


def train(model, past, ahead, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    criterion = nn.MSELoss()
    steps = 0
    for epoch in range(args.epochs):
        order = torch.randperm(len(past))
        total = 0.0
        for first in range(0, len(past) - args.batch_size + 1, args.batch_size):
            rows = order[first : first + args.batch_size]
            optimizer.zero_grad()
            loss = criterion(model(past[rows]), ahead[rows])
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        print(f"epoch {epoch}: mse {total / (len(past) // args.batch_size):.4f}")
    return steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--type", choices=["float64", "float32"], default="float64")
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(3)
    number = getattr(torch, args.type)
    past, ahead = make_windows(make_readings(4096 + HOURS + HORIZON, seed=3))
    past, ahead = torch.from_numpy(past).to(number), torch.from_numpy(ahead).to(number)
    model = build_model(args.width).to(number)

    started = time.perf_counter()
    steps = train(model, past, ahead, args)
    print(f"trained {steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
