"""Forecast prices from a table: NumPy gives doubles, and so it stays."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_table(rows, columns):
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(rows, columns)), axis=0)
    walk = (walk - walk.mean(0)) / walk.std(0)
    target = walk[:, :8].mean(1, keepdims=True)
    return walk, target


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float64", choices=["float32", "float64"])
    parser.add_argument("--batch", type=int, default=256)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    dtype = getattr(torch, args.dtype)
    features, target = make_table(220 * args.batch, 128)
    data = TensorDataset(torch.from_numpy(features).to(dtype), torch.from_numpy(target).to(dtype))
    loader = DataLoader(data, batch_size=args.batch, shuffle=True)
    model = nn.Sequential(
        nn.Linear(128, 768), nn.Tanh(), nn.Linear(768, 768), nn.Tanh(), nn.Linear(768, 1)
    ).to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_fn = nn.MSELoss()

    start = time.perf_counter()
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")
    print(f"trained {len(loader)} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
