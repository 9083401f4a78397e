"""Continual learning on a stream of images, with rehearsal."""

import argparse
import time

import torch
from torch import nn

from memory import ReplayMemory, RingMemory

torch.set_num_threads(1)


def stream(steps, n=32):
    for _ in range(steps):
        yield torch.rand(n, 3, 56, 56), torch.randint(0, 10, (n,))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=120)
    ap.add_argument("--capacity", type=int, default=0)
    args = ap.parse_args()
    torch.manual_seed(0)
    memory = RingMemory(args.capacity) if args.capacity else ReplayMemory()
    net = nn.Sequential(
        nn.Conv2d(3, 24, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(24, 48, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(768, 10),
    )
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    start = time.perf_counter()
    for step, (x, y) in enumerate(stream(args.steps), 1):
        memory.add(x, y)
        old_x, old_y = memory.sample(8)
        logits = net(torch.cat([x[:8], old_x]))
        loss = nn.functional.cross_entropy(logits, torch.cat([y[:8], old_y]))
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
