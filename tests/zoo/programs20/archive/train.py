"""Question 4: photographic plates of the old observatory, classified by a small network."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from store import Server

PLATES = 320


class Remote(Dataset):
    def __init__(self, server):
        self.server = server

    def __len__(self):
        return PLATES

    def __getitem__(self, number):
        return torch.from_numpy(self.server.get(number)), number % 7


class Local(Dataset):
    def __init__(self, server):
        self.plates = torch.from_numpy(server.get_all(PLATES))

    def __len__(self):
        return PLATES

    def __getitem__(self, number):
        return self.plates[number], number % 7


def build():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 7),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--dataset", choices=["remote", "local"], default="remote")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(4)
    server = Server("plates")
    server.fill(PLATES)
    dataset = Remote(server) if args.dataset == "remote" else Local(server)
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    steps = 0
    start = time.perf_counter()
    for _ in range(args.epochs):
        for plates, classes in loader:
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(model(plates), classes).backward()
            optimizer.step()
            steps += 1
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
