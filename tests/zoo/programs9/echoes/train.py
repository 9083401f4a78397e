"""Embeddings of echoes, kept apart from the earlier ones."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Memory:
    def __init__(self, dim, limit):
        self.bank = torch.zeros(1, dim)
        self.limit = limit

    def add(self, rows):
        self.bank = torch.cat([self.bank, rows.detach()])
        if self.limit:
            self.bank = self.bank[-self.limit :]

    def centre(self):
        return nn.functional.normalize(self.bank, dim=1).mean(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(256 * 50, 128)), batch_size=256, shuffle=True)
    model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    memory = Memory(256, args.limit)
    steps = 0
    start = time.perf_counter()
    for _ in range(2):
        for (x,) in loader:
            first = model(x + 0.1 * torch.randn_like(x))
            second = model(x + 0.1 * torch.randn_like(x))
            near = (first - second).square().mean()
            far = nn.functional.normalize(first, dim=1) @ memory.centre()
            loss = near + far.abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            memory.add(first)
            steps += 1
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
