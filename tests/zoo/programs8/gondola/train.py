"""Synchronous SGD over several processes, with the gradients averaged by hand."""

import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from averaging import average_flat, average_gradients


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Regressor(nn.Module):
    def __init__(self, inputs=32, dim=64, depth=20):
        super().__init__()
        self.inp = nn.Linear(inputs, dim)
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(depth)])
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        return self.out(self.blocks(self.inp(x))).squeeze(1)


def partition(rank, world, count=8192):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(count, 32, generator=g)
    y = x[:, :4].sin().sum(1)
    return x[rank::world], y[rank::world]


def run(rank, world, args):
    torch.manual_seed(1234)
    torch.set_num_threads(1)
    x, y = partition(rank, world)
    model = Regressor()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5, foreach=True)
    average = {"each": average_gradients, "flat": average_flat}[args.average]
    dist.barrier()
    start = time.perf_counter()
    for step in range(args.steps):
        pick = torch.randint(0, len(x), (64,))
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[pick]), y[pick])
        loss.backward()
        average(model)
        optimizer.step()
        if rank == 0 and step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    return time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--average", default="each", choices=["each", "flat"])
    parser.add_argument("--steps", type=int, default=150)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    seconds = run(rank, dist.get_world_size(), args)
    dist.destroy_process_group()
    if rank == 0:
        print(f"trained {args.steps} steps in {seconds:.3f} s")
