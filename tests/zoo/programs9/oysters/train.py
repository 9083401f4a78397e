"""Sizes of oysters from photographs, checked against the held-out bank."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    total = sum(nn.functional.mse_loss(model(x), y).item() for x, y in loader)
    model.train()
    return total / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check-every", type=int, default=10)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train = DataLoader(
        TensorDataset(torch.randn(3200, 1, 24, 24), torch.randn(3200, 1)), 16, shuffle=True
    )
    held_out = DataLoader(TensorDataset(torch.randn(512, 1, 24, 24), torch.randn(512, 1)), 64)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps, best = 0, float("inf")
    start = time.perf_counter()
    for x, y in train:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % args.check_every == 0:
            best = min(best, evaluate(model, held_out))
    print(f"best {best:.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
