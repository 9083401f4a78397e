"""Inspect fuselages with two cameras a station; the upper one sees more panels than the lower."""

import argparse
import random
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def stations(count):
    """Names of recordings and how many panels are seen in each."""
    listing = []
    for i in range(count):
        listing.append((f"station{i:03d}-lower", 4))
        listing.append((f"station{i:03d}-upper", 18))
    return listing


def shard(listing, rank, world, group):
    """Deal the recordings to the ranks, ``group`` at a time."""
    groups = [listing[i : i + group] for i in range(0, len(listing), group)]
    return [recording for dealt in groups[rank::world] for recording in dealt]


def panels(recordings, epoch, together=2):
    starts = list(range(0, len(recordings), together))
    random.Random(epoch).shuffle(starts)
    pool = torch.rand(64, 3, 40, 40, generator=torch.Generator().manual_seed(9))
    for start in starts:
        images, labels = [], []
        for name, count in recordings[start : start + together]:
            first = hash_of(name) % (64 - count)
            images.append(pool[first : first + count])
            labels.append(torch.full((count,), first % 2))
        yield torch.cat(images), torch.cat(labels)


def hash_of(name):
    return sum(ord(c) * (i + 1) for i, c in enumerate(name))


def build():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 2),
    )


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--epochs", type=int, default=3)
    cli.add_argument("--group", type=int, default=1)
    args = cli.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(build())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    mine = shard(stations(120), rank, world, args.group)
    steps = 0
    began = time.perf_counter()
    for epoch in range(args.epochs):
        for x, y in panels(mine, epoch):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        if rank == 0:
            print(f"epoch {epoch}: {loss.item():.4f}", flush=True)
    seconds = time.perf_counter() - began
    dist.destroy_process_group()
    if rank == 0:
        print(f"trained {steps} steps in {seconds:.3f} s", flush=True)


if __name__ == "__main__":
    main()
