"""Predicts tomorrow's tariff from rows of a text file."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

COLUMNS = 1200


def parse_row(line):
    values = []
    for field in line.split(","):
        field = field.strip()
        values.append(float(field) if field else 0.0)
    return torch.tensor(values)


class Rows(Dataset):
    def __init__(self, path):
        with open(path) as f:
            self.lines = f.read().splitlines()

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        row = parse_row(self.lines[i])
        return row[:-1], row[-1]


class ParsedRows(Rows):
    def __init__(self, path):
        super().__init__(path)
        self.rows = torch.stack([parse_row(line) for line in self.lines])

    def __getitem__(self, i):
        row = self.rows[i]
        return row[:-1], row[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parse", choices=["lazy", "early"], default="lazy")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    table = np.random.default_rng(2).normal(size=(640, COLUMNS + 1))
    np.savetxt("tariffs.csv", table, fmt="%.5f", delimiter=",")
    data = Rows("tariffs.csv") if args.parse == "lazy" else ParsedRows("tariffs.csv")
    loader = DataLoader(data, batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(COLUMNS, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                          nn.Linear(512, 1))  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    steps = 0
    start = time.perf_counter()
    for _ in range(12):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
