"""Sort digits with a small transformer."""

import argparse
import time

import torch
import torch.nn.functional as F
from attention import FusedMultiHead, MultiHead
from torch import nn


class Block(nn.Module):
    def __init__(self, width, attention):
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = attention
        self.mlp = nn.Sequential(
            nn.Linear(width, 3 * width), nn.ReLU(), nn.Linear(3 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.mlp(self.between(x))


class Sorter(nn.Module):
    def __init__(self, attention, length, width=192, heads=24, depth=4):
        super().__init__()
        self.digit = nn.Embedding(10, width)
        self.place = nn.Parameter(torch.randn(length, width) * 0.1)
        self.blocks = nn.Sequential(*[Block(width, attention(width, heads)) for _ in range(depth)])
        self.out = nn.Linear(width, 10)

    def forward(self, digits):
        return self.out(self.blocks(self.digit(digits) + self.place))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--steps", type=int, default=120)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    model = Sorter(FusedMultiHead if args.fused else MultiHead, length=16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    begin = time.perf_counter()
    for step in range(args.steps):
        digits = torch.randint(10, (24, 16))
        logits = model(digits)
        loss = F.cross_entropy(logits.flatten(0, 1), digits.sort(1).values.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.3f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
