"""Predict loan defaults from a wide table of categories and figures."""

import argparse
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

COLUMNS, FIGURES = 140, 24


class ColumnEmbeddings(nn.Module):
    """One table for each column."""

    def __init__(self, sizes, dim):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(size, dim) for size in sizes])

    def forward(self, codes):
        return torch.cat([table(codes[:, i]) for i, table in enumerate(self.tables)], dim=1)


class JointEmbedding(nn.Module):
    """One table for all columns, each with its own rows."""

    def __init__(self, sizes, dim):
        super().__init__()
        first = torch.tensor([0, *sizes[:-1]]).cumsum(0)
        self.register_buffer("first", first)
        self.table = nn.Embedding(sum(sizes), dim)

    def forward(self, codes):
        return self.table(codes + self.first).flatten(1)


class Scorer(nn.Module):
    def __init__(self, sizes, embedding, dim=4):
        super().__init__()
        self.embedding = embedding(sizes, dim)
        self.mlp = nn.Sequential(
            nn.Linear(len(sizes) * dim + FIGURES, 256),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(256, 128),
            nn.ReLU(),
            nn.Linear(128, 1),
        )

    def forward(self, codes, figures):
        return self.mlp(torch.cat([self.embedding(codes), figures], dim=1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--embedding", default="columns", choices=["columns", "joint"])
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sizes = torch.randint(3, 40, (COLUMNS,)).tolist()
    rows = 128 * 90
    codes = torch.stack([torch.randint(0, size, (rows,)) for size in sizes], dim=1)
    figures = torch.randn(rows, FIGURES)
    default = (figures[:, 0] + (codes[:, 0] == 1) + torch.randn(rows) > 0.5).float()
    # Batches are cut by the sampler, so that the dataset is indexed once for each.
    data = TensorDataset(codes, figures, default)
    order = torch.utils.data.BatchSampler(
        torch.utils.data.RandomSampler(data), batch_size=128, drop_last=True
    )
    loader = DataLoader(data, sampler=order, batch_size=None)
    model = Scorer(sizes, {"columns": ColumnEmbeddings, "joint": JointEmbedding}[args.embedding])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.BCEWithLogitsLoss()
    steps, start = 0, time.perf_counter()
    for epoch in range(6):
        for codes, figures, target in loader:
            optimizer.zero_grad()
            loss = criterion(model(codes, figures), target)
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch} loss {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
