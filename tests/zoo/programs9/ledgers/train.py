"""Flags odd bookings; rare accounts count for more."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def importance(accounts, table):
    weights = []
    for account in accounts:
        weights.append(table.get(int(account), 1.0))
    return torch.tensor(weights)


def importance_lookup(accounts, table):
    return table[accounts]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lookup", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    n = 6144 * 40
    x, accounts = torch.randn(n, 64), torch.randint(0, 500, (n,))
    odd = (torch.rand(n) < 0.1).float()
    counts = torch.bincount(accounts, minlength=500).float()
    table = n / (500 * counts)
    weigh = importance_lookup
    if not args.lookup:
        table = dict(enumerate(table.tolist()))
        weigh = importance
    loader = DataLoader(TensorDataset(torch.arange(40)), batch_size=1, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = 0
    start = time.perf_counter()
    for _ in range(7):
        for (chunk,) in loader:
            rows = slice(int(chunk) * 6144, (int(chunk) + 1) * 6144)
            logits = model(x[rows]).squeeze(1)
            weight = weigh(accounts[rows], table)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, odd[rows], weight)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
