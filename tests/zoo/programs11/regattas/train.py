import argparse
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from comm import broadcast_parameters, setup
from engine import Accumulator, build_model, train


def make_races(n, features):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, features, generator=g)
    return TensorDataset(x, torch.tanh(x[:, :8]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--average", choices=["always", "update"], default="always")
    args = parser.parse_args()
    rank, world = setup()
    torch.manual_seed(rank)
    data = make_races(9216, 256)
    sampler = DistributedSampler(data, world, rank, shuffle=True, drop_last=True)
    loader = DataLoader(data, batch_size=96, sampler=sampler, drop_last=True)
    model = build_model(256, 960, 8)
    broadcast_parameters(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    accumulator = Accumulator(model, optimizer, 8, args.average)
    dist.barrier()
    start = time.perf_counter()
    steps, loss = train(model, loader, accumulator, epochs=2)
    took = time.perf_counter() - start
    if rank == 0:
        print(f"mean loss {loss:.4f}")
        print(f"trained {steps} steps in {took:.3f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
