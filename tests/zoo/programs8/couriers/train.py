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


def flatten(routes):
    """Return every stop of the routes, and the two before it."""
    parts = [torch.stack([r[:-2], r[1:-1], r[2:]]) for r in routes]
    return torch.cat(parts, dim=1)


class NextStop(nn.Module):
    def __init__(self, stops=300, dim=96, hidden=384):
        super().__init__()
        self.embed = nn.Embedding(stops, dim)
        self.mlp = nn.Sequential(
            nn.Linear(2 * dim, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, stops),
        )

    def forward(self, before):
        return self.mlp(self.embed(before.T).flatten(1))


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
    loader = DataLoader(data, batch_size=16, sampler=sampler, collate_fn=flatten, drop_last=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    dist.barrier()
    steps, start = 0, time.perf_counter()
    for epoch in range(3):
        for stops in loader:
            loss = F.cross_entropy(model(stops[:2]), stops[2])
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
