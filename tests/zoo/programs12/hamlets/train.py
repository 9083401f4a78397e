"""Households of two districts, one process each."""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class District(Dataset):
    def __init__(self, rows, steps, seed):
        generator = torch.Generator().manual_seed(seed)
        self.rows, self.steps = rows, steps
        self.households = torch.randn(rows * 6, 256, generator=generator)

    def __len__(self):
        return self.steps

    def __getitem__(self, index):
        begin = index % 6 * self.rows
        x = self.households[begin : begin + self.rows]
        return x, x[:, :16].mean(dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--rows", type=int, nargs=2, default=[1024, 3072], help="households a step, by process"
    )
    parser.add_argument("--steps", type=int, default=70)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    loader = DataLoader(
        District(args.rows[rank], args.steps, seed=rank), batch_size=None, shuffle=True
    )
    network = nn.Sequential(
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 1),
    )
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    dist.barrier()
    steps = 0
    start = time.perf_counter()
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x).squeeze(-1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - start
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
