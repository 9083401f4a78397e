"""Learns which recipes of biscuits sell; large effective batches on two processes."""

import argparse
import contextlib
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def build(width, depth):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def micro_batches(count, size, width, rank):
    generator = torch.Generator().manual_seed(100 + rank)
    recipes = torch.randn(2048, width, generator=generator)
    sales = recipes[:, :16].sum(dim=1, keepdim=True).tanh()
    for _ in range(count):
        rows = torch.randint(len(recipes), (size,), generator=generator)
        yield recipes[rows], sales[rows]


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=96)
    parser.add_argument("--accumulate", type=int, default=24)
    parser.add_argument("--sync", choices=["always", "update"], default="always")
    return parser.parse_args()


def main():
    args = parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(50)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    width = 1024
    model = DDP(build(width, depth=4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_function = nn.MSELoss()

    dist.barrier()
    started = time.perf_counter()
    for step, (recipes, sales) in enumerate(micro_batches(args.steps, 48, width, rank), start=1):
        update = step % args.accumulate == 0
        held = args.sync == "update" and not update
        with model.no_sync() if held else contextlib.nullcontext():
            loss = loss_function(model(recipes), sales) / args.accumulate
            loss.backward()
        if update:
            optimizer.step()
            optimizer.zero_grad()
            if rank == 0:
                print(f"update {step // args.accumulate}: loss {loss.item() * args.accumulate:.4f}")
    elapsed = time.perf_counter() - started
    dist.destroy_process_group()
    if rank == 0:
        print(f"trained {args.steps} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
