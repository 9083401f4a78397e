"""Finds faults in pulleys by their sound."""

import argparse
import time

import torch
from shards import BANDS, CLASSES, Recordings, write_shards
from torch import nn
from torch.utils.data import DataLoader

BATCH = 32
PER_SHARD = 512


class Listener(nn.Module):
    def __init__(self, channels=128):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(BANDS, channels, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(channels, channels, 5, padding=2),
            nn.ReLU(),
        )
        self.out = nn.Linear(channels, CLASSES)

    def forward(self, x):
        return self.out(self.layers(x / 10).mean(dim=2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=int, default=7)
    parser.add_argument("--prefetch", type=int, default=2)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(2)
    write_shards(args.shards, PER_SHARD, seed=2)
    loader = DataLoader(
        Recordings(args.shards), batch_size=BATCH, num_workers=1, prefetch_factor=args.prefetch
    )
    model = Listener()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    steps = 0
    started = time.perf_counter()
    for features, labels in loader:
        loss = nn.functional.cross_entropy(model(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 25 == 0:
            print(f"step {steps}: loss {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
