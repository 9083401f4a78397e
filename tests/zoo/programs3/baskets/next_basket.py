"""What will be bought next, from the baskets so far."""

import argparse
import time

import numpy as np
import torch
from collate import pad_arrays, pad_lists
from torch import nn
from torch.utils.data import DataLoader

ITEMS = 500


def make_customers(count, rng):
    customers = []
    for _ in range(count):
        taste = rng.integers(1, ITEMS, 50)
        history = [rng.choice(taste, rng.integers(10, 49)) for _ in range(rng.integers(12, 25))]
        customers.append((history, int(rng.choice(taste))))
    return customers


class NextBasket(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.items = nn.EmbeddingBag(ITEMS, width, mode="mean", padding_idx=0)
        self.mix = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.rnn = nn.GRU(width, 2 * width, batch_first=True)
        self.out = nn.Linear(2 * width, ITEMS)

    def forward(self, items, mask):
        customers, baskets, size = items.shape
        bags = self.items(items.view(-1, size)).view(customers, baskets, -1)
        there = mask.amax(2)
        hidden, _ = self.rnn(bags + self.mix(bags))
        mean = (hidden * there[..., None]).sum(1) / there.sum(1, keepdim=True)
        return self.out(mean)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pad", choices=["lists", "arrays"], default="lists")
    args = parser.parse_args()
    torch.manual_seed(2)
    torch.set_num_threads(1)

    customers = make_customers(1920, np.random.default_rng(2))
    collate = {"lists": pad_lists, "arrays": pad_arrays}[args.pad]
    loader = DataLoader(customers, batch_size=32, shuffle=True, collate_fn=collate)
    model = NextBasket()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    steps = 0
    started = time.perf_counter()
    for epoch in range(3):
        total = torch.zeros(())
        for items, mask, following in loader:
            loss = criterion(model(items, mask), following)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
            steps += 1
        print(f"epoch {epoch}: {total.item() / len(loader):.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - started:.3f} s")
