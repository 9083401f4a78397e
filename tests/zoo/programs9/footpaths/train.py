"""Use of footpaths: graph convolution over the junctions of a village."""

import argparse
import time

import torch
from torch import nn


def normalised(adjacency):
    a = adjacency + torch.eye(len(adjacency))
    scale = a.sum(1).rsqrt()
    a = scale[:, None] * a * scale[None, :]
    return 0.5 * a + 0.5 * a @ a


class Paths(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, 128)
        self.second = nn.Linear(128, 64)
        self.out = nn.Linear(64, 1)

    def forward(self, x, a):
        x = torch.relu(a @ self.first(x))
        x = torch.relu(a @ self.second(x))
        return self.out(x).squeeze(1)


def train(model, x, adjacency, use, steps, once):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    fixed = normalised(adjacency) if once else None
    for step in range(steps):
        a = normalised(adjacency) if fixed is None else fixed
        rows = torch.randint(0, len(x), (256,))
        loss = nn.functional.mse_loss(model(x, a)[rows], use[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1}: {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--normalise", choices=["step", "once"], default="step")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    n, steps = 700, 120
    adjacency = (torch.rand(n, n) < 0.02).float()
    adjacency = torch.maximum(adjacency, adjacency.T)
    x, use = torch.randn(n, 64), torch.rand(n)
    start = time.perf_counter()
    train(Paths(64), x, adjacency, use, steps, args.normalise == "once")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
