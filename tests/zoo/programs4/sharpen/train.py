"""Single-image sharpening (a small EDSR)."""

import argparse
import os
import time

import torch
from torch import nn
from tqdm import tqdm


class Body(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Conv2d(width, width, 3, padding=1)
        self.b = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return x + 0.1 * self.b(torch.relu(self.a(x)))


class Sharpener(nn.Module):
    def __init__(self, width=32, depth=4):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.Sequential(*(Body(width) for _ in range(depth)))
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x):
        return x + self.last(self.body(self.first(x)))


def photos(n, size, generator):
    x = torch.randn(n, 3, size // 4, size // 4, generator=generator)
    x = nn.functional.interpolate(x, size=size, mode="bicubic")
    return x + 0.3 * torch.sign(x)


def blur(x):
    return nn.functional.avg_pool2d(x, 3, 1, 1)


def charbonnier(a, b, eps=1e-3):
    return torch.sqrt((a - b) ** 2 + eps**2).mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--crop", type=int, default=40)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads-per-core", type=int, default=8)
    opts = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(opts.threads_per_core * len(os.sched_getaffinity(0)))

    sharp = photos(64, 96, torch.Generator().manual_seed(3))
    net = Sharpener()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    started = time.perf_counter()
    for _ in tqdm(range(opts.steps), mininterval=2.0):
        y, x = (int(v) for v in torch.randint(96 - opts.crop, (2,)))
        pick = torch.randint(len(sharp), (opts.batch,))
        target = sharp[pick, :, y : y + opts.crop, x : x + opts.crop]
        loss = charbonnier(net(blur(target)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.5f}")
    print(f"trained {opts.steps} steps in {time.perf_counter() - started:.3f} s")
