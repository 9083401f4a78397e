"""Rents by postcode: a large table of vectors and a small network."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Rents(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.codes = nn.Embedding(60_000, 32, sparse=sparse)
        self.net = nn.Sequential(nn.Linear(40, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
                                 nn.Linear(256, 1))  # fmt: skip

    def forward(self, code, x):
        return self.net(torch.cat([self.codes(code), x], dim=1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sparse", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    n = 256 * 60
    data = TensorDataset(torch.randint(0, 60_000, (n,)), torch.randn(n, 8), torch.randn(n))
    loader = DataLoader(data, batch_size=256, shuffle=True)
    model = Rents(args.sparse)
    if args.sparse:
        optimizers = [
            torch.optim.SparseAdam(model.codes.parameters(), lr=1e-3),
            torch.optim.Adam(model.net.parameters(), lr=1e-3),
        ]
    else:
        optimizers = [torch.optim.Adam(model.parameters(), lr=1e-3)]
    steps = 0
    start = time.perf_counter()
    for _ in range(2):
        for code, x, y in loader:
            loss = nn.functional.mse_loss(model(code, x), y)
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            steps += 1
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
