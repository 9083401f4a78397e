import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from tiles.dataset import BatchedTileDataset, TileDataset
from tiles.store import Bucket


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batched-requests", action="store_true")
    return parser.parse_args()


def main():
    options = parse()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    bucket = Bucket(640)
    kind = BatchedTileDataset if options.batched_requests else TileDataset
    loader = DataLoader(
        kind(bucket),
        batch_size=16,
        shuffle=True,
        num_workers=options.workers,
        persistent_workers=options.workers > 0,
    )
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 3),
    )
    optimizer = torch.optim.Adam(model.parameters())
    total, begin = 0, time.perf_counter()
    for _epoch in range(4):
        for tiles, colours in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(tiles), colours)
            loss.backward()
            optimizer.step()
            total += 1
    print(f"mean squared error {loss.item():.4f}")
    print(f"trained {total} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
