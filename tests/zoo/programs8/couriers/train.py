"""Next-stop prediction for couriers, data parallel on two processes."""

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Sampler


class Routes(Dataset):
    """Routes of many lengths, as the dispatch system exports them: by length."""

    def __init__(self, count=1024, stops=300):
        g = torch.Generator().manual_seed(0)
        lengths = torch.randint(12, 120, (count,), generator=g).sort().values
        self.routes = [torch.randint(1, stops, (int(n),), generator=g) for n in lengths]

    def __len__(self):
        return len(self.routes)

    def __getitem__(self, i):
        return self.routes[i]


class ShardSampler(Sampler):
    """This rank's part of the routes: a stretch of them, or every n-th."""

    def __init__(self, size, rank, world, stride):
        if stride:
            self.mine = list(range(rank, size, world))
        else:
            each = size // world
            self.mine = list(range(rank * each, (rank + 1) * each))

    def __len__(self):
        return len(self.mine)

    def __iter__(self):
        for i in torch.randperm(len(self.mine)).tolist():
            yield self.mine[i]


def pad(routes):
    return nn.utils.rnn.pad_sequence(routes, batch_first=True)


class NextStop(nn.Module):
    def __init__(self, stops=300, dim=96):
        super().__init__()
        self.embed = nn.Embedding(stops, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, stops)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stride", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(NextStop())
    data = Routes()
    sampler = ShardSampler(len(data), rank, world, args.stride)
    loader = DataLoader(data, batch_size=16, sampler=sampler, collate_fn=pad, drop_last=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    dist.barrier()
    steps, start = 0, time.perf_counter()
    for epoch in range(3):
        for ids in loader:
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}")
    seconds = time.perf_counter() - start
    dist.destroy_process_group()
    if rank == 0:
        print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
