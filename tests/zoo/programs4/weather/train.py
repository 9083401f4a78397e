import argparse
import time

import numpy as np
import torch
from shampoo import Shampoo
from torch import nn


def stations(n_hours, n_stations, rng):
    t = np.arange(n_hours)[:, None]
    daily = np.sin(2 * np.pi * t / 24 + rng.uniform(0, 6, n_stations))
    slow = np.cumsum(rng.normal(0, 0.1, (n_hours, n_stations)), 0)
    x = daily + slow + rng.normal(0, 0.2, slow.shape)
    return torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)


class Mixer(nn.Module):
    """TSMixer: time and stations in turn."""

    def __init__(self, history, n_stations, horizon, depth=3):
        super().__init__()
        self.time = nn.ModuleList(nn.Linear(history, history) for _ in range(depth))
        self.space = nn.ModuleList(nn.Linear(n_stations, n_stations) for _ in range(depth))
        self.out = nn.Linear(history, horizon)

    def forward(self, x):
        for time_layer, space_layer in zip(self.time, self.space):
            x = x + torch.relu(time_layer(x.transpose(1, 2))).transpose(1, 2)
            x = x + torch.relu(space_layer(x))
        return self.out(x.transpose(1, 2)).transpose(1, 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=180)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--history", type=int, default=168)
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--precondition-every", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    series = stations(4000, 64, np.random.default_rng(0))
    windows = series.unfold(0, args.history + args.horizon, 1).transpose(1, 2)
    model = Mixer(args.history, 64, args.horizon)
    optimizer = Shampoo(model.parameters(), lr=0.02, update_every=args.precondition_every)
    start = time.perf_counter()
    for step in range(args.steps):
        batch = windows[torch.randint(len(windows), (args.batch,))]
        past, future = batch[:, : args.history], batch[:, args.history :]
        loss = nn.functional.huber_loss(model(past), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
