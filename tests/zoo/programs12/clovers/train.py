"""Counting clover leaves in small pictures."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, kernel):
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 3, padding=1)
        self.context = nn.Conv2d(24, 24, kernel, padding=kernel // 2)
        self.body = nn.Conv2d(24, 48, 3, padding=1)
        self.top = nn.Conv2d(48, 96, 3, padding=1)
        self.head = nn.Linear(96, 5)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        x = self.pool(torch.relu(self.stem(x)))
        x = torch.relu(self.context(x))
        x = self.pool(torch.relu(self.body(x)))
        x = torch.relu(self.top(x))
        return self.head(x.mean(dim=(2, 3)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernel", type=int, default=9)
    parser.add_argument("--steps", type=int, default=68)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    pictures = torch.randn(args.steps * 12, 3, 64, 64)
    leaves = torch.randint(0, 5, (args.steps * 12,))
    loader = DataLoader(TensorDataset(pictures, leaves), batch_size=12, shuffle=True)
    model = Net(args.kernel)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    steps = 0
    start = time.perf_counter()
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - start
    print(f"loss {loss.item():.3f}")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
