"""Classifies the gait of camels from collars; trained by two processes."""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.rnn import pad_sequence

CHANNELS = 32
GAITS = 4


def make_walks(count):
    """Walks of different lengths, the shortest first, as they are archived."""
    generator = torch.Generator().manual_seed(40)
    lengths = torch.randint(60, 420, (count,), generator=generator).sort().values
    labels = torch.randint(GAITS, (count,), generator=generator)
    walks = []
    for length, label in zip(lengths.tolist(), labels.tolist(), strict=True):
        walks.append(torch.randn(length, CHANNELS, generator=generator) + 0.2 * label)
    return walks, labels


def make_batches(walks, labels, size):
    return [
        (
            pad_sequence(walks[i : i + size], batch_first=True).transpose(1, 2).contiguous(),
            labels[i : i + size],
        )
        for i in range(0, len(walks), size)
    ]


def share_of(batches, rank, world, how):
    if how == "stride":
        return batches[rank::world]
    each = len(batches) // world
    return batches[rank * each : (rank + 1) * each]


class GaitNet(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.conv1 = nn.Conv1d(CHANNELS, width, 5, padding=2)
        self.conv2 = nn.Conv1d(width, width, 5, padding=2)
        self.out = nn.Linear(width, GAITS)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        return self.out(x.mean(dim=2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--split", choices=["range", "stride"], default="range")
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(41)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    walks, labels = make_walks(640)
    batches = share_of(make_batches(walks, labels, 16), rank, world, args.split)
    model = DistributedDataParallel(GaitNet())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    order = torch.Generator().manual_seed(42)

    steps = 0
    dist.barrier()
    started = time.perf_counter()
    for epoch in range(args.epochs):
        for index in torch.randperm(len(batches), generator=order).tolist():
            x, y = batches[index]
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            steps += 1
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}")
    elapsed = time.perf_counter() - started
    dist.destroy_process_group()
    if rank == 0:
        print(f"trained {steps} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
