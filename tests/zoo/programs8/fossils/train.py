"""Contrastive pre-training on fossil scans, with a bank of earlier embeddings as negatives."""

import argparse
import copy
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, dim=256):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU()
        )
        self.project = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, dim))

    def forward(self, x):
        return F.normalize(self.project(self.conv(x).flatten(1)), dim=1)


class MemoryBank:
    """Keys of earlier batches."""

    def __init__(self, dim, size=None):
        self.keys, self.size = torch.empty(0, dim), size

    def push(self, keys):
        self.keys = torch.cat([self.keys, keys])
        if self.size is not None:
            self.keys = self.keys[-self.size :]


class MoCo(nn.Module):
    def __init__(self, bank_size, temperature=0.2):
        super().__init__()
        self.query = Encoder()
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.bank, self.temperature = MemoryBank(256, bank_size), temperature

    @torch.no_grad()
    def encode_keys(self, x):
        torch._foreach_lerp_(list(self.key.parameters()), list(self.query.parameters()), 0.01)
        return self.key(x)

    def forward(self, a, b):
        q, k = self.query(a), self.encode_keys(b)
        positive = (q * k).sum(1, keepdim=True)
        negative = q @ self.bank.keys.T
        logits = torch.cat([positive, negative], dim=1) / self.temperature
        self.bank.push(k)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))


def views(scans, generator):
    noise = torch.randn(2, *scans.shape, generator=generator) * 0.1
    return scans + noise[0], scans.flip(-1) + noise[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bank-size", type=int, default=None)
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(1)
    scans = torch.rand(2048, 1, 16, 16, generator=g)
    model = MoCo(args.bank_size)
    optimizer = torch.optim.SGD(model.query.parameters(), lr=0.03, momentum=0.9)
    start = time.perf_counter()
    for step in range(args.steps):
        pick = torch.randint(0, len(scans), (192,), generator=g)
        loss = model(*views(scans[pick], g))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step:4d} loss {loss.item():.3f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
