"""Counts gulls on photographs of cliffs, with two processes.

python -m torch.distributed.run --nproc-per-node 2 train.py
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def cliffs(count, seed):
    g = torch.Generator().manual_seed(seed)
    images = torch.rand(count, 1, 48, 48, generator=g) * 0.5
    counts = torch.randint(0, 8, (count,), generator=g)
    for image, number in zip(images, counts.tolist()):
        for y, x in torch.randint(2, 44, (number, 2), generator=g).tolist():
            image[0, y : y + 2, x : x + 3] = 1.0
    return TensorDataset(images, counts.float())


def build(width=16):
    def block(a, b):
        return nn.Sequential(
            nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.ReLU(), nn.MaxPool2d(2)
        )

    return nn.Sequential(
        block(1, width),
        block(width, 2 * width),
        block(2 * width, 2 * width),
        nn.Flatten(),
        nn.Linear(2 * width * 36, 32),
        nn.ReLU(),
        nn.Linear(32, 1),
        nn.Flatten(0),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(44)
    data = cliffs(40 * world * args.batch_size, 44)
    sampler = DistributedSampler(data, seed=44, drop_last=True)
    loader = DataLoader(data, args.batch_size, sampler=sampler)
    model = DistributedDataParallel(build(), gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs * len(loader))

    dist.barrier()
    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(1)
        for images, counts in loader:
            loss = F.smooth_l1_loss(model(images), counts)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.detach()
            steps += 1
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: {total.item() / world / len(loader):.4f}", flush=True)
    seconds = time.perf_counter() - start
    if rank == 0:
        torch.save(model.module.state_dict(), "gulls.pt")
        print(f"trained {steps} steps in {seconds:.3f} s", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
