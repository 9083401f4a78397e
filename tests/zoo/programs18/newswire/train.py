"""Topic model over bags of words, on two processes."""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn


class Topics(nn.Module):
    def __init__(self, words, width, depth):
        super().__init__()
        self.enter = nn.Linear(words, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.leave = nn.Linear(width, 20)

    def forward(self, x):
        x = self.enter(x)
        for norm, layer in zip(self.norms, self.hidden):
            x = x + torch.tanh(layer(norm(x)))
        return self.leave(x)


def average_each(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
        param.grad.data /= size


def average_flat(model):
    grads = [p.grad for p in model.parameters()]
    flat = torch.cat([g.flatten() for g in grads])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    at = 0
    for g in grads:
        g.copy_(flat[at : at + g.numel()].view_as(g))
        at += g.numel()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--flat", action="store_true")
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Topics(400, 96, 24)
    average = average_flat if args.flat else average_each
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    g = torch.Generator().manual_seed(rank)
    articles = torch.rand(1024, 400, generator=g)
    topics = torch.randint(0, 20, (1024,), generator=g)

    dist.barrier()
    start = time.perf_counter()
    for step in range(args.steps):
        rows = torch.randint(0, 1024, (192,), generator=g)
        loss = nn.functional.cross_entropy(model(articles[rows]), topics[rows])
        optimizer.zero_grad()
        loss.backward()
        average(model)
        optimizer.step()
    took = time.perf_counter() - start
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print(f"trained {args.steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
