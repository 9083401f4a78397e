"""A small language model on dialogs, data parallel."""

import argparse
import time

import torch
import torch.distributed as dist
from shards import batches, block, corpus, stripe
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WORDS = 600


class Dialog(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
            nn.GELU(),
            nn.Linear(width, WORDS),
        )

    def forward(self, ids):
        return self.layers(self.words(ids))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--split", choices=["block", "stripe"], default="block")
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(0)

    split = {"block": block, "stripe": stripe}[args.split]
    mine = split(corpus(1280, WORDS), rank, world)
    model = DistributedDataParallel(Dialog())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    steps = 0
    dist.barrier()
    start = time.perf_counter()
    for ids in batches(mine, 16, args.epochs):
        logits = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    took = time.perf_counter() - start
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
