"""Signals of beacons, many passes over a small set."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ORDER = None


def prepare_worker(worker_id):
    """Every worker has its own ranking of the calibration table."""
    global ORDER
    torch.set_num_threads(1)
    rng = np.random.default_rng(11)
    ORDER = np.argsort(rng.random(1_500_000))


class Beacons(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(7)
        self.signals = torch.randn(count, 128, 192, generator=generator)
        self.targets = torch.randint(0, 10, (count, 128), generator=generator)

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, index):
        gain = 1.0 + float(ORDER[index]) * 1e-8
        return self.signals[index] * gain, self.targets[index]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--keep-workers", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    loader = DataLoader(
        Beacons(160),
        batch_size=16,
        shuffle=True,
        num_workers=2,
        worker_init_fn=prepare_worker,
        persistent_workers=args.keep_workers,
    )
    model = nn.Sequential(
        nn.Linear(192, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()

    steps = 0
    start = time.perf_counter()
    for _ in range(args.epochs):
        for signals, targets in loader:
            logits = model(signals)
            loss = criterion(logits.flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    seconds = time.perf_counter() - start
    print(f"loss {loss.item():.3f}")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
