"""Delays of ferries from the reports of their crews, on two processes."""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Reports(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(2000, 48)
        self.rnn = nn.GRU(48, 64, batch_first=True)
        self.out = nn.Linear(64, 1)

    def forward(self, ids):
        _, last = self.rnn(self.embed(ids))
        return self.out(last[0]).squeeze(1)


def my_share(batches, how):
    rank, world = dist.get_rank(), dist.get_world_size()
    if how == "block":
        size = len(batches) // world
        return batches[rank * size : (rank + 1) * size]
    return batches[rank::world]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", choices=["block", "stride"], default="block")
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    g = torch.Generator().manual_seed(0)
    lengths = sorted(torch.randint(8, 160, (160,), generator=g).tolist())
    batches = [torch.randint(0, 2000, (16, length), generator=g) for length in lengths]
    torch.manual_seed(0)
    model = DistributedDataParallel(Reports())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps = 0
    start = time.perf_counter()
    for ids in my_share(batches, args.share):
        loss = model(ids).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    dist.barrier()
    if dist.get_rank() == 0:
        print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
