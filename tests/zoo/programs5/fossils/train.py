"""Fossils in slices of rock: a small segmentation network."""

import argparse
import os
import time

import torch
from torch import nn


class Segmenter(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.up = nn.Sequential(nn.ConvTranspose2d(2 * width, width, 2, 2), nn.ReLU())
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        return self.out(self.up(self.down(x)))


def slices(n, generator, side=64):
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    cx, cy, r = (torch.rand(3, n, 1, 1, generator=generator) * side / 2).unbind(0)
    shell = ((x - cx - 16) ** 2 + (y - cy - 16) ** 2) < (r / 2 + 4) ** 2
    rock = shell + torch.randn(n, side, side, generator=generator)
    return rock[:, None], shell[:, None].float()


def pin(rank):
    """Each process has its own core, as on the cluster."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--no-pin", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if not args.no_pin:
        pin(int(os.environ.get("LOCAL_RANK", 0)))
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    rocks, shells = slices(400, torch.Generator().manual_seed(0))
    model = Segmenter()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for step in range(args.steps):
        pick = torch.randint(len(rocks), (8,))
        loss = nn.functional.binary_cross_entropy_with_logits(model(rocks[pick]), shells[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step}: {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
