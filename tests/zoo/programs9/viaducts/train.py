"""Load on viaducts; two processes, gradients of four batches added up."""

import argparse
import contextlib
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ACCUMULATE = 4


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-sync", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(2560, 256), torch.randn(2560, 1))
    loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data))
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(256, 1536), nn.ReLU(), nn.Linear(1536, 1536), nn.ReLU(),
                      nn.Linear(1536, 1))
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps = 0
    start = time.perf_counter()
    for x, y in loader:
        steps += 1
        last = steps % ACCUMULATE == 0
        with model.no_sync() if args.no_sync and not last else contextlib.nullcontext():
            loss = nn.functional.mse_loss(model(x), y) / ACCUMULATE
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    if dist.get_rank() == 0:
        print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
