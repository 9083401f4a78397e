"""Next-basket prediction from a transaction table."""

import argparse
import time

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
ITEMS = 500
HISTORY = 40


def make_table(customers=6000, per_customer=200, seed=1):
    rng = np.random.default_rng(seed)
    n = customers * per_customer
    return pd.DataFrame(
        {
            "customer": rng.permutation(np.repeat(np.arange(customers), per_customer)),
            "item": rng.integers(0, ITEMS, n),
            "price": rng.gamma(2.0, 5.0, n).astype(np.float32),
        }
    )


class Baskets(Dataset):
    def __init__(self, table, grouped):
        self.table = table
        self.customers = table["customer"].unique()
        self.groups = None
        if grouped:
            self.groups = {
                c: (g["item"].to_numpy(), g["price"].to_numpy())
                for c, g in table.groupby("customer")
            }

    def __len__(self):
        return len(self.customers)

    def rows_of(self, customer):
        if self.groups is not None:
            return self.groups[customer]
        rows = self.table[self.table["customer"] == customer]
        return rows["item"].to_numpy(), rows["price"].to_numpy()

    def __getitem__(self, i):
        items, prices = self.rows_of(self.customers[i])
        return (
            torch.from_numpy(items[:HISTORY].copy()),
            torch.from_numpy(prices[:HISTORY].copy()),
            int(items[HISTORY]),
        )


class NextItem(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.items = nn.Embedding(ITEMS, width)
        self.price = nn.Linear(1, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, ITEMS)

    def forward(self, items, prices):
        x = self.items(items) + self.price(prices.unsqueeze(-1))
        return self.head(self.encoder(x).mean(dim=1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100)
    ap.add_argument("--index", choices=["scan", "groups"], default="scan")
    args = ap.parse_args()
    torch.manual_seed(0)
    data = Baskets(make_table(), grouped=args.index == "groups")
    loader = DataLoader(
        data, batch_size=32, shuffle=True, num_workers=2, persistent_workers=True, drop_last=True
    )
    model = NextItem()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    criterion = nn.CrossEntropyLoss()
    step, began = 0, time.perf_counter()
    while step < args.steps:
        for items, prices, target in loader:
            loss = criterion(model(items, prices), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step >= args.steps:
                break
    took = time.perf_counter() - began
    print(f"final loss {loss.item():.3f}")
    print(f"trained {step} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
