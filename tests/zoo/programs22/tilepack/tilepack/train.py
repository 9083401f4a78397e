import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from tilepack.archive import CLASSES, write_regions
from tilepack.data import HeldTiles, Tiles


def build_model():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, CLASSES),
    )


def train(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    steps = 0
    for epoch in range(epochs):
        for tiles, kinds in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(tiles), kinds)
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch}: loss {loss.item():.4f}")
    return steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default="tiles")
    parser.add_argument("--regions", type=int, default=3)
    parser.add_argument("--tiles-each", type=int, default=600)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--hold-archives", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(11)
    torch.set_num_threads(1)
    paths = write_regions(args.folder, args.regions, args.tiles_each, seed=11)
    dataset = HeldTiles(paths) if args.hold_archives else Tiles(paths)
    loader = DataLoader(
        dataset,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=2,
        persistent_workers=True,
    )
    model = build_model()
    start = time.perf_counter()
    steps = train(model, loader, args.epochs)
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
