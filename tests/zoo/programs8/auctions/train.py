"""Rank lots for bidders from their past bids (Kaggle-style script)."""

import argparse
import gc
import random
import time

import torch
import torch.nn as nn


class CFG:
    lots = 4000
    bidders = 3000
    dim = 64
    batch_size = 768
    steps = 120
    lr = 2e-3
    seed = 42


def load_bids():
    """Each bidder's history as the API gives it: a list of bids, each a dictionary."""
    rng = random.Random(CFG.seed)
    return {
        bidder: [
            {"lot": rng.randrange(CFG.lots), "price": rng.expovariate(0.01), "tags": [rng.random()]}
            for _ in range(4)
        ]
        for bidder in range(CFG.bidders)
    }


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.bidder = nn.Embedding(CFG.bidders, CFG.dim)
        self.lot = nn.Embedding(CFG.lots, CFG.dim)
        self.left = nn.Sequential(nn.Linear(CFG.dim, 512), nn.ReLU(), nn.Linear(512, CFG.dim))
        self.right = nn.Sequential(nn.Linear(CFG.dim, 512), nn.ReLU(), nn.Linear(512, CFG.dim))

    def forward(self, bidder, lot):
        u, v = self.left(self.bidder(bidder)), self.right(self.lot(lot))
        return nn.functional.normalize(u, dim=1) @ nn.functional.normalize(v, dim=1).T * 10


def train_fn(model, optimizer, pairs, bids, tidy):
    start = time.perf_counter()
    running = torch.zeros(())
    for step in range(CFG.steps):
        batch = pairs[torch.randint(0, len(pairs), (CFG.batch_size,))]
        scores = model(batch[:, 0], batch[:, 1])
        loss = nn.functional.cross_entropy(scores, torch.arange(len(batch)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if tidy and step % 4 == 3:
            del batch, scores, loss
            gc.collect()
    print(f"mean loss {running.item() / CFG.steps:.4f} over {len(bids)} bidders")
    return time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-tidy", dest="tidy", action="store_false")
    args = parser.parse_args()
    torch.manual_seed(CFG.seed)
    torch.set_num_threads(1)
    bids = load_bids()
    pairs = torch.tensor([(who, bid["lot"]) for who, history in bids.items() for bid in history])
    model = TwoTower()
    optimizer = torch.optim.Adam(model.parameters(), lr=CFG.lr)
    seconds = train_fn(model, optimizer, pairs, bids, args.tidy)
    print(f"trained {CFG.steps} steps in {seconds:.3f} s")
