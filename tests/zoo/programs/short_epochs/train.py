"""Few-shot episodes: an epoch is only a handful of batches."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Episodes(Dataset):
    def __init__(self, count, features=128):
        generator = torch.Generator().manual_seed(0)
        self.x = torch.randn(count, features, generator=generator)
        self.y = (self.x[:, :4].sum(1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


def run_epoch(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep-workers", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(
        Episodes(1088),
        batch_size=64,
        shuffle=True,
        num_workers=1,
        multiprocessing_context="spawn",
        persistent_workers=args.keep_workers,
    )
    model = nn.Sequential(
        nn.Linear(128, 1536), nn.ReLU(), nn.Linear(1536, 1536), nn.ReLU(), nn.Linear(1536, 2)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    start = time.perf_counter()
    for epoch in range(4):
        print(f"epoch {epoch}: {run_epoch(model, loader, optimizer):.3f}")
    print(f"trained {4 * len(loader)} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
