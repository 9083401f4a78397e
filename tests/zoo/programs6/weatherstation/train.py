import argparse
import csv
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

COLUMNS = 40
HOURS = 24


def write_measurements(path, rows=3000, seed=44):
    rng = np.random.default_rng(seed)
    walk = rng.standard_normal((rows, COLUMNS)).cumsum(0) / 30
    with open(path, "w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow([f"sensor_{i}" for i in range(COLUMNS)])
        writer.writerows([[f"{v:.4f}" for v in row] for row in walk])


def read_measurements(path):
    with open(path) as f:
        rows = list(csv.reader(f))[1:]
    table = np.array([[float(v) for v in row] for row in rows])
    return (table - table.mean(0)) / table.std(0)


class Windows(Dataset):
    def __init__(self, table):
        self.table = torch.from_numpy(table)
        self.windows = self.table.unfold(0, HOURS + 1, 1)

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, index):
        window = self.windows[index]
        return window[..., :HOURS].flatten(1), window[..., HOURS]


class Forecaster(nn.Module):
    def __init__(self, hidden=512):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(COLUMNS * HOURS, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, COLUMNS),
        )

    def forward(self, x):
        return self.layers(x)


def main(args):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    write_measurements("station.csv")
    table = read_measurements("station.csv")
    model = Forecaster()
    if args.single:
        table = table.astype(np.float32)
    else:
        model = model.double()
    dataset = Windows(table)
    batches = BatchSampler(RandomSampler(dataset), args.batch_size, drop_last=True)
    loader = DataLoader(dataset, sampler=batches, batch_size=None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-5)
    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch} mse {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--single", action="store_true")
    main(parser.parse_args())
