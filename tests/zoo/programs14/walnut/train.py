"""Grading nuts by their outline: a small network."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def outlines(count=5120, points=96):
    gen = torch.Generator().manual_seed(12)
    grade = torch.randint(4, (count,), generator=gen)
    angle = torch.linspace(0, 6.283, points)
    wobble = 0.1 + 0.05 * grade.float().unsqueeze(1)
    radius = 1 + wobble * torch.sin(5 * angle) + 0.05 * torch.randn(count, points, generator=gen)
    xy = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
    return TensorDataset(xy, grade)


def network(width=80):
    return nn.Sequential(
        nn.Conv1d(2, width, 5, padding=2),
        nn.ReLU(),
        nn.Conv1d(width, width, 5, padding=2),
        nn.ReLU(),
        nn.Conv1d(width, width, 5, padding=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(width, 4),
    )


def run(threads, epochs):
    torch.set_num_threads(threads)
    torch.manual_seed(12)
    loader = DataLoader(outlines(), batch_size=48, shuffle=True)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    steps = 0
    begin = time.perf_counter()
    for epoch in range(epochs):
        for xy, grade in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xy), grade)
            loss.backward()
            optimizer.step()
            steps += 1
        scheduler.step()
        print(f"epoch {epoch}, loss {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")


parser = argparse.ArgumentParser()
parser.add_argument("--threads", type=int, default=6)
parser.add_argument("--epochs", type=int, default=1)

if __name__ == "__main__":
    options = parser.parse_args()
    run(options.threads, options.epochs)
