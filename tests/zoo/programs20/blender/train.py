"""Question 14: a deep residual perceptron that predicts the taste of a blend of teas."""

import argparse
import time

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.mix(self.norm(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--threads", type=int, default=32)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(14)
    model = nn.Sequential(nn.Linear(40, 128), *[Block(128) for _ in range(24)], nn.Linear(128, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    teas = torch.randn(5120, 40)
    taste = teas[:, :5].tanh()
    start = time.perf_counter()
    for step in range(args.steps):
        batch = slice(step % 10 * 512, step % 10 * 512 + 512)
        loss = nn.functional.mse_loss(model(teas[batch]), taste[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
