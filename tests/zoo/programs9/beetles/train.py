"""Beetles from museum scans; loss and accuracy are kept for each batch."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def accuracy(model, x, y):
    return (model(x).argmax(1) == y).float().mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reuse-logits", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(960, 3, 32, 32), torch.randint(0, 10, (960,)))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps, hits = 0, 0.0
    start = time.perf_counter()
    for _ in range(2):
        for x, y in loader:
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            if args.reuse_logits:
                hits += (logits.argmax(1) == y).float().mean()
            else:
                hits += accuracy(model, x, y)
            optimizer.step()
            steps += 1
    print(f"accuracy {float(hits) / steps:.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
