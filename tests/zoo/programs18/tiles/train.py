"""Land-cover tiles from an object store."""

import argparse
import time
from dataclasses import dataclass

import torch
from storage import Store
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    tiles: int = 640
    batch: int = 16
    epochs: int = 3
    ranged: bool = False


class Tiles(Dataset):
    def __init__(self, store, labels):
        self.store = store
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.from_numpy(self.store.get(i)), self.labels[i]


class RangedTiles(Tiles):
    def __getitems__(self, indices):
        tiles = torch.from_numpy(self.store.get_range(indices))
        return tiles, self.labels[indices]


def build():
    return nn.Sequential(
        nn.Conv2d(4, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 9),
    )


def fit(config):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    store = Store(config.tiles, (4, 48, 48))
    labels = torch.randint(0, 9, (config.tiles,))
    if config.ranged:
        loader = DataLoader(
            RangedTiles(store, labels), config.batch, shuffle=True, collate_fn=lambda b: b
        )
    else:
        loader = DataLoader(Tiles(store, labels), config.batch, shuffle=True)
    model = build()
    optim = torch.optim.Adam(model.parameters(), 1e-3)
    loss_fn = nn.CrossEntropyLoss()
    steps = 0
    begin = time.time()
    for _ in range(config.epochs):
        for tile, label in loader:
            optim.zero_grad()
            loss_fn(model(tile), label).backward()
            optim.step()
            steps += 1
    print(f"trained {steps} steps in {time.time() - begin:.3f} s")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--ranged", action="store_true")
    ap.add_argument("--epochs", type=int, default=Config.epochs)
    ns = ap.parse_args()
    fit(Config(ranged=ns.ranged, epochs=ns.epochs))
