"""Which playground will a family visit next? Two towers over visitors and places."""

import argparse
import time
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Settings:
    families: int = 75_000
    places: int = 25_000
    width: int = 48
    hidden: int = 320
    batch: int = 640
    steps: int = 90


class Towers(nn.Module):
    def __init__(self, s, sparse):
        super().__init__()
        self.family = nn.Embedding(s.families, s.width, sparse=sparse)
        self.place = nn.Embedding(s.places, s.width, sparse=sparse)
        self.left = self.tower(s)
        self.right = self.tower(s)

    @staticmethod
    def tower(s):
        return nn.Sequential(
            nn.Linear(s.width, s.hidden), nn.ReLU(), nn.Linear(s.hidden, s.hidden), nn.ReLU(),
            nn.Linear(s.hidden, s.hidden),
        )  # fmt: skip

    def forward(self, family, place):
        return self.left(self.family(family)) @ self.right(self.place(place)).T / 16


def optimizers(model, sparse):
    tables = [model.family.weight, model.place.weight]
    dense = [*model.left.parameters(), *model.right.parameters()]
    rows = torch.optim.SparseAdam if sparse else torch.optim.Adam
    return [rows(tables, lr=1e-3), torch.optim.Adam(dense, lr=1e-3, fused=True)]


def visits(s):
    g = torch.Generator().manual_seed(6)
    family = torch.randint(0, s.families, (s.steps, s.batch), generator=g)
    place = torch.randint(0, s.places, (s.steps, s.batch), generator=g)
    return zip(family, place)


def main(sparse):
    s = Settings()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Towers(s, sparse)
    opts = optimizers(model, sparse)
    same = torch.arange(s.batch)
    began, done = time.perf_counter(), 0
    for family, place in visits(s):
        loss = nn.functional.cross_entropy(model(family, place), same)
        for opt in opts:
            opt.zero_grad()
        loss.backward()
        for opt in opts:
            opt.step()
        done += 1
        if done % 30 == 0:
            print(f"step={done} loss={loss.item():.4f}")
    print(f"trained {done} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--sparse", action="store_true")
    main(ap.parse_args().sparse)
