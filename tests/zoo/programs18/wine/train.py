"""Ratings of wines from lab values: a residual MLP."""

import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


def make_model(width=256, depth=4):
    return nn.Sequential(
        nn.Linear(32, width), *(Block(width) for _ in range(depth)), nn.Linear(width, 1)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=8 * (os.cpu_count() or 1))
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)

    values = torch.randn(40 * 256, 32)
    rating = values[:, :4].sum(dim=1, keepdim=True) + 0.1 * torch.randn(len(values), 1)
    loader = DataLoader(TensorDataset(values, rating), batch_size=256, shuffle=True)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch + 1}: {loss.item():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
