"""Forecast tomorrow's temperature from weather records kept in an object store."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

torch.set_num_threads(1)
torch.manual_seed(5)

RECORD = np.dtype([("series", np.float32, (16, 48)), ("target", np.float32)])
ROUND_TRIP = 0.003


class Bucket:
    """An object with byte ranges, as a store on the network offers it."""

    def __init__(self, records, seed=5):
        rng = np.random.default_rng(seed)
        table = np.zeros(records, RECORD)
        table["series"] = rng.standard_normal((records, 16, 48), dtype=np.float32)
        table["target"] = table["series"][:, 0, -8:].mean(1)
        self.body = table.tobytes()

    def get(self, first, last):
        time.sleep(ROUND_TRIP + (last - first) * 1e-9)
        return self.body[first:last]


class Records(IterableDataset):
    def __init__(self, bucket, count, at_once):
        self.bucket = bucket
        self.count = count
        self.at_once = at_once

    def __iter__(self):
        info = get_worker_info()
        share = self.count // info.num_workers
        first = info.id * share
        for start in range(first, first + share, self.at_once):
            stop = min(start + self.at_once, first + share)
            data = self.bucket.get(start * RECORD.itemsize, stop * RECORD.itemsize)
            for record in np.frombuffer(data, RECORD):
                yield torch.from_numpy(record["series"].copy()), float(record["target"])


class Forecaster(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.inp = nn.Conv1d(16, width, 3, padding=1)
        self.blocks = nn.ModuleList(nn.Conv1d(width, width, 3, padding=1) for _ in range(3))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.relu(self.inp(x))
        for block in self.blocks:
            h = h + torch.relu(block(h))
        return self.out(h.mean(-1)).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--records-per-request", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--batches", type=int, default=120)
    args = parser.parse_args()

    count = args.batches * args.batch_size
    dataset = Records(Bucket(count), count, args.records_per_request)
    loader = DataLoader(dataset, args.batch_size, num_workers=2)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.SmoothL1Loss()

    begin = time.perf_counter()
    step = 0
    for series, target in loader:
        loss = criterion(model(series), target.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 40 == 0:
            print(f"{step:4d}  {loss.item():.4f}")
    print(f"trained {step} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
