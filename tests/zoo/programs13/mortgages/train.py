"""Which mortgages default? A residual MLP on tabular data."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

NUMERIC, CATEGORIES = 40, (12, 50, 8, 30)


def make_table(count, seed):
    rng = np.random.default_rng(seed)
    numeric = rng.standard_normal((count, NUMERIC), dtype=np.float32)
    codes = np.stack([rng.integers(0, n, count) for n in CATEGORIES], 1)
    risk = numeric[:, :5].sum(1) * 0.6 + np.sin(codes[:, 1]) + rng.normal(0, 1, count)
    label = (risk > 1.0).astype(np.float32)
    return torch.from_numpy(numeric), torch.from_numpy(codes), torch.from_numpy(label)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Scorer(nn.Module):
    def __init__(self, width=224, blocks=3):
        super().__init__()
        self.codes = nn.ModuleList(nn.Embedding(n, 8) for n in CATEGORIES)
        self.first = nn.Linear(NUMERIC + 8 * len(CATEGORIES), width)
        self.blocks = nn.Sequential(*[Residual(width) for _ in range(blocks)])
        self.last = nn.Linear(width, 1)

    def forward(self, numeric, codes):
        embedded = [table(codes[:, i]) for i, table in enumerate(self.codes)]
        x = self.first(torch.cat([numeric, *embedded], 1))
        return self.last(self.blocks(x))[:, 0]


def auc(score, label):
    rank = score.argsort().argsort().float() + 1
    positive = label.sum()
    negative = len(label) - positive
    return ((rank[label > 0].sum() - positive * (positive + 1) / 2) / (positive * negative)).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=256)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(50)

    numeric, codes, label = make_table(40 * args.batch_size, 50)
    held_out = make_table(1024, 51)
    model = Scorer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        model.train()
        order = torch.randperm(len(label))
        total = 0.0
        for rows in order.split(args.batch_size):
            logits = model(numeric[rows], codes[rows])
            loss = F.binary_cross_entropy_with_logits(logits, label[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        model.eval()
        with torch.no_grad():
            score = auc(model(*held_out[:2]), held_out[2])
        print(f"epoch {epoch}  loss {total / 40:.4f}  AUC {score:.4f}")
    seconds = time.perf_counter() - start
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
