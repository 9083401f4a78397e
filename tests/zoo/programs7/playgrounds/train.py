"""Which playground will a family visit next? Two towers over visitors and places."""

import argparse
import time
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Settings:
    families: int = 60_000
    places: int = 20_000
    width: int = 48
    hidden: int = 256
    batch: int = 256
    steps: int = 120


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
    if sparse:
        return [torch.optim.SparseAdam(tables, lr=1e-3), torch.optim.Adam(dense, lr=1e-3)]
    return [torch.optim.Adam([*tables, *dense], lr=1e-3)]


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
        if done % 40 == 0:
            print(f"step={done} loss={loss.item():.4f}")
    print(f"trained {done} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--sparse", action="store_true")
    main(ap.parse_args().sparse)
