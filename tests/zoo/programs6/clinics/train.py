"""Two hospitals train one network together; scanners differ in resolution."""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

SIDES = {"north": 40, "south": 80}


class Scans(Dataset):
    def __init__(self, schedule, batch_size):
        generator = torch.Generator().manual_seed(3)
        self.schedule = schedule
        self.batch_size = batch_size
        self.pools = {
            site: torch.rand(64, 1, side, side, generator=generator) for site, side in SIDES.items()
        }

    def __len__(self):
        return len(self.schedule)

    def __getitem__(self, index):
        pool = self.pools[self.schedule[index]]
        rows = torch.arange(index, index + self.batch_size) % len(pool)
        return pool[rows], rows % 3


def schedule(rank, steps, mixed):
    sites = sorted(SIDES)
    if mixed:
        return [sites[step % 2] for step in range(steps)]
    return [sites[rank]] * steps


def network():
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(24, 48, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(48, 48, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(48, 3),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--mixed", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    loader = DataLoader(Scans(schedule(rank, args.steps, args.mixed), 24), batch_size=None)
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    dist.barrier()
    start = time.perf_counter()
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - start
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print(f"trained {args.steps} steps in {seconds:.3f} s", flush=True)


if __name__ == "__main__":
    main()
