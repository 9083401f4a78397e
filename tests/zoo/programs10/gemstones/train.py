"""Grades gemstones by their likeness to learned examples."""

import argparse
import time

import torch
from torch import nn

FEATURES = 256
GRADES = 12


class Prototypes(nn.Module):
    """Squared distance of every row to every learned example."""

    def __init__(self, dim, count):
        super().__init__()
        self.points = nn.Parameter(torch.randn(count, dim))

    def forward(self, x):
        return (x[:, None, :] - self.points[None, :, :]).pow(2).sum(dim=-1)


class DotPrototypes(Prototypes):
    def forward(self, x):
        own = self.points.pow(2).sum(dim=1)
        return x.pow(2).sum(dim=1, keepdim=True) - 2 * x @ self.points.T + own


class Grader(nn.Module):
    def __init__(self, prototypes, width=768, dim=64):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(FEATURES, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, dim),
        )
        self.prototypes = prototypes(dim, 512)
        self.out = nn.Linear(512, GRADES)

    def forward(self, x):
        distances = self.prototypes(self.encoder(x))
        return self.out(torch.exp(-distances / 64))


def batches(features, grades, size, generator):
    while True:
        rows = torch.randint(len(features), (size,), generator=generator)
        yield features[rows], grades[rows]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=90)
    parser.add_argument("--distance", choices=["difference", "product"], default="difference")
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(8)
    features = torch.randn(4096, FEATURES)
    grades = (features @ torch.randn(FEATURES, GRADES)).argmax(dim=1)
    model = Grader(Prototypes if args.distance == "difference" else DotPrototypes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    source = batches(features, grades, 144, torch.Generator().manual_seed(9))

    started = time.perf_counter()
    for step in range(args.steps):
        rows, wanted = next(source)
        loss = nn.functional.cross_entropy(model(rows), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1}: loss {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
