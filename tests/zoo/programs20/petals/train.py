"""Question 25: flowers, a small convolutional network."""

import argparse
import time

import torch
from torch import nn


class Petals(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU())
        self.body = nn.Sequential(
            nn.Conv2d(24, 32, 3, padding=1, stride=2), nn.BatchNorm2d(32), nn.ReLU()
        )
        self.tail = nn.Sequential(
            nn.Conv2d(32, 48, 3, padding=1, stride=2), nn.BatchNorm2d(48), nn.ReLU()
        )
        self.head = nn.Linear(48, 17)

    def forward(self, x):
        return self.head(self.tail(self.body(self.stem(x))).mean(dim=(2, 3)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=220)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(25)
    flowers = torch.randn(640, 3, 32, 32)
    names = torch.randint(0, 17, (640,))
    model = Petals()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    start = time.perf_counter()
    for step in range(args.steps):
        rows = slice(step % 20 * 32, step % 20 * 32 + 32)
        loss = nn.functional.cross_entropy(model(flowers[rows]), names[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 60 == 0:
            print(f"step {step + 1}: loss {loss.item():.3f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
