import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from kron import Kron


def make_data(batch, batches):
    torch.manual_seed(7)
    design = torch.rand(batch * batches, 48)
    drag = torch.sin(3 * design[:, :8]).sum(1, keepdim=True) + design.pow(2).mean(1, keepdim=True)
    return TensorDataset(design, drag)


def build(width):
    return nn.Sequential(
        nn.Linear(48, width),
        nn.Tanh(),
        nn.Linear(width, width),
        nn.Tanh(),
        nn.Linear(width, width),
        nn.Tanh(),
        nn.Linear(width, 1),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=1536)
    parser.add_argument("--batches", type=int, default=120)
    parser.add_argument("--refresh", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)

    data = make_data(args.batch, args.batches)
    sampler = torch.utils.data.BatchSampler(
        torch.utils.data.RandomSampler(data), args.batch, drop_last=True
    )
    loader = DataLoader(data, sampler=sampler, batch_size=None)
    model = build(192)
    optimizer = Kron(model.parameters(), lr=1e-3, refresh=args.refresh)
    start = time.perf_counter()
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"{step}: {loss.item():.4f}")
    print(f"trained {step + 1} steps in {time.perf_counter() - start:.3f} s")
