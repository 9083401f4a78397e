"""Two processes train a tagger on bird logs; each has its part of the logs."""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def make_logs(count):
    gen = torch.Generator().manual_seed(3)
    lengths = 8 + 150 * torch.rand(count, generator=gen).pow(3)
    return [torch.randint(1, 500, (int(n),), generator=gen) for n in lengths.sort().values]


def part_of(logs, split, rank, world):
    if split == "blocks":
        size = len(logs) // world
        return logs[rank * size : (rank + 1) * size]
    return logs[rank::world]


def batches(logs, size, epoch):
    gen = torch.Generator().manual_seed(epoch)
    groups = [logs[i : i + size] for i in range(0, len(logs), size)]
    for index in torch.randperm(len(groups), generator=gen).tolist():
        yield nn.utils.rnn.pad_sequence(groups[index], batch_first=True)


class Tagger(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.embed = nn.Embedding(500, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 20)

    def forward(self, ids):
        return self.head(self.encoder(self.embed(ids)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--split", choices=["blocks", "stride"], default="blocks")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()

    logs = part_of(make_logs(2400), args.split, rank, world)
    model = DistributedDataParallel(Tagger())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    dist.barrier()
    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for ids in batches(logs, 24, epoch):
            logits = model(ids)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), (ids % 20).flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    dist.barrier()
    seconds = time.perf_counter() - start
    dist.destroy_process_group()
    if int(os.environ["RANK"]) == 0:
        print(f"trained {steps} steps in {seconds:.3f} s", flush=True)


if __name__ == "__main__":
    main()
