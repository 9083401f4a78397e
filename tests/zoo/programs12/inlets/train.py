"""Currents in sea inlets, on two processes, with several batches for each update."""

import argparse
import contextlib
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def build():
    layers = []
    for _ in range(4):
        layers += [nn.Linear(1024, 1024), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(1024, 8))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gather", choices=["each", "last"], default="each")
    parser.add_argument("--batches", type=int, default=20, help="batches for an update")
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)

    x = torch.randn(args.steps * 64, 1024)
    loader = DataLoader(TensorDataset(x, x[:, :8].sin()), batch_size=64, shuffle=True)
    model = DistributedDataParallel(build())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    dist.barrier()
    steps = 0
    start = time.perf_counter()
    for currents, target in loader:
        steps += 1
        last = steps % args.batches == 0
        alone = args.gather == "last" and not last
        with model.no_sync() if alone else contextlib.nullcontext():
            loss = nn.functional.mse_loss(model(currents), target) / args.batches
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
    seconds = time.perf_counter() - start
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
