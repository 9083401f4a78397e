"""Predicts a wind farm's output from the state of its windmills."""

import argparse
import time

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class FarmModel(nn.Module):
    def __init__(self, inputs, width=256, blocks=5):
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(blocks)])
        self.last = nn.Linear(width, 1)

    def forward(self, x):
        return self.last(self.blocks(self.first(x))).squeeze(1)


def train(model, states, power, args):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    for step in range(1, args.steps + 1):
        rows = torch.randint(len(states), (args.batch_size,))
        loss = nn.functional.mse_loss(model(states[rows]), power[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: mse {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--threads", type=int, default=16)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(14)
    states = torch.randn(8192, 64)
    power = torch.sin(states[:, :8].sum(dim=1)) + 0.1 * torch.randn(8192)
    model = FarmModel(64)

    started = time.perf_counter()
    train(model, states, power, args)
    print(f"trained {args.steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
