"""Question 12: leaves and the sheets of the herbarium that they come from."""

import argparse
import gc
import time

import torch
from torch import nn


class Trainer:
    def __init__(self, model, tidy_every):
        self.model = model
        self.tidy_every = tidy_every
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.done = 0

    def step(self, leaves, species):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(leaves), species)
        loss.backward()
        self.optimizer.step()
        self.done += 1
        if self.tidy_every and self.done % self.tidy_every == 0:
            self.tidy()
        return loss.detach()

    def tidy(self):
        gc.collect()


def sheets(count):
    return [
        {"number": n, "box": [n // 100, n % 100], "place": f"shelf {n % 17}"} for n in range(count)
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=90)
    parser.add_argument("--tidy-every", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(12)
    catalogue = sheets(60_000)
    leaves = torch.randn(512, 3, 32, 32)
    species = torch.tensor([sheet["box"][1] % 20 for sheet in catalogue[:512]])
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 48, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(2),
        nn.Flatten(),
        nn.Linear(192, 20),
    )
    trainer = Trainer(model, args.tidy_every)
    start = time.perf_counter()
    for step in range(args.steps):
        rows = slice(step % 16 * 32, step % 16 * 32 + 32)
        trainer.step(leaves[rows], species[rows])
    seconds = time.perf_counter() - start
    print(f"{len(catalogue)} sheets in the catalogue")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
