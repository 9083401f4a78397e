"""Predict which lantern is lit next: a deep, narrow mixer over short sequences."""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

from optim import build


class MixerBlock(nn.Module):
    def __init__(self, length, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.time = nn.Sequential(nn.Linear(length, length), nn.GELU(), nn.Linear(length, length))
        self.channel = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.time(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, lanterns=64, length=24, dim=64, depth=24):
        super().__init__()
        self.embed = nn.Embedding(lanterns, dim)
        self.blocks = nn.Sequential(*[MixerBlock(length, dim) for _ in range(depth)])
        self.head = nn.Linear(dim, lanterns)

    def forward(self, ids):
        return self.head(self.blocks(self.embed(ids)).mean(1))


def run(args):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Mixer()
    optimizer = build(args.optimizer, model.parameters())
    orders = torch.randint(0, 64, (4096, 24))
    lit = (orders[:, -1] * 3 + orders[:, 0]) % 64
    started = time.perf_counter()
    for step in range(args.steps):
        pick = torch.randint(0, len(orders), (16,))
        loss = F.cross_entropy(model(orders[pick]), lit[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 25 == 0:
            print(f"[{step + 1}/{args.steps}] {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--optimizer", default="lamb", choices=["lamb", "adamw"])
    parser.add_argument("--steps", type=int, default=75)
    run(parser.parse_args())
