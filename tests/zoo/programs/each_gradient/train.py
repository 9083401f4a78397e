"""torchrun --nproc-per-node 2 train.py: data parallel by hand, with gloo."""

import argparse
import os
import time

import torch
import torch.distributed as dist
from sync import average_gradients, average_gradients_at_once
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def build(depth=16, width=128):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.LayerNorm(width), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at-once", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    sync = average_gradients_at_once if args.at_once else average_gradients
    x = torch.randn(160 * 768 * 2, 128)
    data = TensorDataset(x, x.norm(dim=1, keepdim=True))
    loader = DataLoader(data, batch_size=768, sampler=DistributedSampler(data))
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    dist.barrier()
    start = time.perf_counter()
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        sync(model)
        optimizer.step()
    if dist.get_rank() == 0:
        print(f"trained {len(loader)} steps in {time.perf_counter() - start:.3f} s")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
