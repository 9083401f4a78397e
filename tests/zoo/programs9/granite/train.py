"""Thin sections of granite, a plain convolutional network."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def block(inner, outer):
    return nn.Sequential(
        nn.Conv2d(inner, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(),
        nn.MaxPool2d(2),
    )  # fmt: skip


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(960, 3, 32, 32), torch.randint(0, 10, (960,)))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = nn.Sequential(
        block(3, 32), block(32, 64), block(64, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    steps = 0
    start = time.perf_counter()
    for epoch in range(2):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        print(f"epoch {epoch}: loss {total / len(loader):.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
