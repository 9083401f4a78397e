"""Yachts in pictures: a small convolutional network."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS = 72


def block(inside, outside):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    pictures = torch.randn(STEPS * 16, 3, 64, 64)
    kinds = torch.randint(0, 8, (STEPS * 16,))
    loader = DataLoader(TensorDataset(pictures, kinds), batch_size=16, shuffle=True)
    model = nn.Sequential(
        block(3, 24),
        block(24, 56),
        block(56, 96),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(96, 8),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    steps = 0
    start = time.perf_counter()
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 24 == 0:
            print(f"step {steps} loss {loss.item():.3f}")
    seconds = time.perf_counter() - start
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
