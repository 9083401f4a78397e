"""Depth from texture: a small network with one layer that looks far around."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class DepthNet(nn.Module):
    def __init__(self, kernel):
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1)
        self.context = nn.Conv2d(16, 16, kernel, padding=kernel // 2)
        self.refine = nn.Conv2d(16, 16, 3, padding=1)
        self.out = nn.Conv2d(16, 1, 1)
        self.act = nn.ReLU()

    def forward(self, x):
        x = self.act(self.stem(x))
        x = x + self.act(self.context(x))
        x = self.act(self.refine(x))
        return self.out(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", type=int, default=11)
    parser.add_argument("--steps", type=int, default=220)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    pictures = torch.randn(args.steps * 16, 1, 32, 32)
    depth = nn.functional.avg_pool2d(pictures, 5, stride=1, padding=2)
    loader = DataLoader(TensorDataset(pictures, depth), batch_size=16)
    model = DepthNet(args.kernel)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.SmoothL1Loss()
    start = time.perf_counter()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")
    print(f"trained {len(loader)} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
