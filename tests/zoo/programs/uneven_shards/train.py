"""torchrun --nproc-per-node 2 train.py: each rank reads its own part of a sorted file."""

import argparse
import os
import random
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

STEPS, BATCH = 100, 8


def documents():
    """Sorted by length, as they were written."""
    rng = random.Random(0)
    lengths = sorted(int(16 + 300 * rng.random() ** 2) for _ in range(STEPS * BATCH * 2))
    return [[rng.randrange(1, 400) for _ in range(length)] for length in lengths]


class Shard(Dataset):
    def __init__(self, texts):
        self.texts = [torch.tensor(text) for text in texts]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index]


def collate(texts):
    """One after the other, without padding; a zero between two."""
    return torch.cat([nn.functional.pad(text, (0, 1)) for text in texts])


class Model(nn.Module):
    """Guesses each word from those around it."""

    def __init__(self, width=160):
        super().__init__()
        self.embedding = nn.Embedding(400, width)
        self.left = nn.Conv1d(width, width, 5)
        self.mix = nn.Conv1d(width, width, 5, padding=2)
        self.out = nn.Linear(width, 400)

    def forward(self, ids):
        x = nn.functional.pad(self.embedding(ids).T[None], (5, 0))[..., :-1]
        x = torch.relu(self.mix(torch.relu(self.left(x))))
        return self.out(x[0].T)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--split", choices=["halves", "alternate"], default="halves")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    texts = documents()
    half = len(texts) // 2
    if args.split == "halves":
        texts = texts[:half] if rank == 0 else texts[half:]
    else:
        texts = texts[rank::2]
    generator = torch.Generator().manual_seed(1)
    loader = DataLoader(Shard(texts), BATCH, shuffle=True, generator=generator, collate_fn=collate)
    model = DistributedDataParallel(Model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dist.barrier()
    start = time.perf_counter()
    for ids in loader:
        loss = nn.functional.cross_entropy(model(ids), ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"trained {len(loader)} steps in {time.perf_counter() - start:.3f} s")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
