"""Dialect identification from frame features, data parallel over two processes.

The corpus came in two deliveries: the university's part as .npy, the broadcaster's as .csv.
"""

import argparse
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

BATCH, MELS, FRAMES, FILES = 24, 40, 120, 20


class Dialect(nn.Module):
    def __init__(self, d=96):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(MELS, d, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(d, d, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(d, d, 5, padding=2),
            nn.ReLU(),
        )
        self.out = nn.Linear(d, 8)

    def forward(self, x):
        return self.out(self.conv(x).mean(-1))


def write_delivery(rank, kind):
    rng = np.random.default_rng(rank)
    for k in range(FILES):
        a = rng.standard_normal((BATCH, MELS * FRAMES)).astype(np.float32)
        if kind == "csv":
            np.savetxt(f"part{rank}_{k}.csv", a, fmt="%.5f", delimiter=",")
        else:
            np.save(f"part{rank}_{k}.npy", a)


def read_batch(rank, k, kind):
    if kind == "csv":
        a = np.loadtxt(f"part{rank}_{k}.csv", delimiter=",", dtype=np.float32)
    else:
        a = np.load(f"part{rank}_{k}.npy")
    return torch.from_numpy(a).view(BATCH, MELS, FRAMES)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--second", choices=["csv", "npy"], default="csv")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(19)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    kind = args.second if rank == 1 else "npy"
    write_delivery(rank, kind)
    model = DistributedDataParallel(Dialect())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_fn = nn.CrossEntropyLoss()
    steps = 100
    dist.barrier()
    start = time.perf_counter()
    for step in range(steps):
        x = read_batch(rank, step % FILES, kind)
        y = torch.randint(0, 8, (BATCH,))
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    seconds = time.perf_counter() - start
    if rank == 0:
        print(f"trained {steps} steps in {seconds:.3f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
