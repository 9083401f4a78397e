"""Predict clicks on news from hashed fields."""

import argparse
import time

import torch
from torch import nn

FIELDS = 8


class ClickModel(nn.Module):
    def __init__(self, buckets, width, sparse):
        super().__init__()
        self.table = nn.Embedding(buckets, width, sparse=sparse)
        self.mlp = nn.Sequential(
            nn.Linear(FIELDS * width, 384),
            nn.ReLU(),
            nn.Linear(384, 256),
            nn.ReLU(),
            nn.Linear(256, 1),
        )

    def forward(self, fields):
        return self.mlp(self.table(fields).flatten(1)).squeeze(1)


def batches(count, size, buckets):
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        popular = torch.rand(size, FIELDS, generator=generator) ** 3
        fields = (popular * buckets).long()
        yield fields, (fields.sum(1) % 2).float()


def evaluate(model, buckets):
    model.eval()
    with torch.no_grad():
        right = [((model(x) > 0) == (y > 0.5)).float().mean() for x, y in batches(4, 512, buckets)]
    return torch.stack(right).mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--buckets", type=int, default=70_000)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--sparse-gradients", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    model = ClickModel(args.buckets, args.width, args.sparse_gradients)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    criterion = nn.BCEWithLogitsLoss()
    begin = time.perf_counter()
    for step, (fields, clicked) in enumerate(batches(args.steps, 512, args.buckets), 1):
        loss = criterion(model(fields), clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"{step:5d}  loss {loss.item():.4f}")
    took = time.perf_counter() - begin
    print(f"accuracy {evaluate(model, args.buckets):.3f}")
    print(f"trained {step} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
