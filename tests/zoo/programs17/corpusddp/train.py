"""Document classifier on two processes."""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)


def make_batches(steps, world):
    """Documents sorted by length and cut into batches, so that there is little padding."""
    g = torch.Generator().manual_seed(4)
    lengths = (
        (20 + 80 * torch.empty(steps * world).exponential_(generator=g))
        .clamp(max=320)
        .long()
        .sort()
        .values.tolist()
    )
    return [
        (torch.randint(0, 1000, (20, k), generator=g), torch.randint(0, 6, (20,), generator=g))
        for k in lengths
    ]


def share_of(batches, rank, world, split):
    if split == "blocks":
        size = len(batches) // world
        mine = batches[rank * size : (rank + 1) * size]
    else:
        mine = batches[rank::world]
    order = torch.randperm(len(mine), generator=torch.Generator().manual_seed(1)).tolist()
    return [mine[i] for i in order]


class Classifier(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.embed = nn.Embedding(1000, d)
        layer = nn.TransformerEncoderLayer(d, 4, 192, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(d, 6)

    def forward(self, ids):
        return self.out(self.encoder(self.embed(ids)).mean(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=120)
    ap.add_argument("--split", choices=["blocks", "stride"], default="blocks")
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    batches = share_of(make_batches(args.steps, world), rank, world, args.split)
    model = DistributedDataParallel(Classifier())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    dist.barrier()
    start = time.perf_counter()
    for ids, label in batches:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(ids), label)
        loss.backward()
        opt.step()
    dist.barrier()
    took = time.perf_counter() - start
    dist.destroy_process_group()
    if rank == 0:
        print(f"trained {len(batches)} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
