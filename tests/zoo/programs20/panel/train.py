"""Question 17: a panel of judges. Each has a small network of its own above a common trunk."""

import argparse
import time

import torch
from torch import nn


class Panel(nn.Module):
    def __init__(self, judges, width, hidden):
        super().__init__()
        self.judges = nn.ModuleList(
            nn.Sequential(nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, 1))
            for _ in range(judges)
        )

    def forward(self, x):
        return torch.cat([judge(x) for judge in self.judges], dim=1)


class JointPanel(nn.Module):
    def __init__(self, judges, width, hidden):
        super().__init__()
        self.first = nn.Parameter(torch.randn(judges, width, hidden) / width**0.5)
        self.first_bias = nn.Parameter(torch.zeros(judges, 1, hidden))
        self.second = nn.Parameter(torch.randn(judges, hidden, 1) / hidden**0.5)
        self.second_bias = nn.Parameter(torch.zeros(judges, 1, 1))

    def forward(self, x):
        rows = x.expand(len(self.first), *x.shape)
        hidden = torch.tanh(torch.baddbmm(self.first_bias, rows, self.first))
        return torch.baddbmm(self.second_bias, hidden, self.second).squeeze(2).T


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=130)
    parser.add_argument("--panel", choices=["separate", "joint"], default="separate")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(17)
    panel = (Panel if args.panel == "separate" else JointPanel)(240, 24, 8)
    trunk = nn.Sequential(
        nn.Linear(100, 640), nn.ReLU(), nn.Linear(640, 640), nn.ReLU(), nn.Linear(640, 24)
    )
    model = nn.Sequential(trunk, panel)
    essays = torch.randn(1280, 100)
    marks = torch.randn(1280, 240)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    start = time.perf_counter()
    for step in range(args.steps):
        rows = slice(step % 10 * 128, step % 10 * 128 + 128)
        loss = (model(essays[rows]) - marks[rows]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
