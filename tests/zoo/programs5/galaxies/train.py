import argparse
import time
from pathlib import Path

import torch
from survey import Survey, write_shards
from torch import nn
from torch.utils.data import DataLoader


def network():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.GELU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 3, padding=1), nn.GELU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(48 * 64, 64), nn.GELU(), nn.Linear(64, 1),
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--prefetch", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    paths = write_shards(Path.cwd(), 4, 480)
    loader = DataLoader(
        Survey(paths, args.epochs),
        batch_size=args.batch_size,
        num_workers=2,
        prefetch_factor=args.prefetch,
    )
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps, start = 0, time.perf_counter()
    for images, tilt in loader:
        loss = nn.functional.mse_loss(model(images)[:, 0], tilt.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 60 == 0:
            print(f"step {steps}: {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
