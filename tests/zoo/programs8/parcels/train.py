"""Where does the parcel go? Streaming training from shards."""

import argparse
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from shards import Shards, write_shards


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefetch-factor", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    write_shards("shards", 8, 960, 1024)
    loader = DataLoader(
        Shards("shards"),
        batch_size=32,
        num_workers=2,
        prefetch_factor=args.prefetch_factor,
    )
    model = nn.Sequential(
        nn.Unflatten(1, (1, 1024)),
        nn.Conv1d(1, 48, 8, stride=5, padding=3),
        nn.ReLU(),
        nn.Conv1d(48, 48, 7, padding=3),
        nn.ReLU(),
        nn.Conv1d(48, 64, 7, padding=3),
        nn.ReLU(),
        nn.AdaptiveMaxPool1d(4),
        nn.Flatten(),
        nn.Linear(256, 9),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    steps, total, start = 0, torch.zeros(()), time.perf_counter()
    for scans, zones in loader:
        loss = criterion(model(scans), zones)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        steps += 1
    print(f"mean loss {total.item() / steps:.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
