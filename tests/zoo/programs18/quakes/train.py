"""Picks P arrivals in three-component seismograms."""

import json
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

STATIONS = "stations.json"
SETTINGS = {"persistent_workers": "keep" in sys.argv[1:]}


def write_stations():
    rng = np.random.default_rng(0)
    table = {
        f"ST{k:06d}": {"gain": float(rng.random() + 0.5), "at": [k * 0.1, k * 0.2]}
        for k in range(12000)
    }
    with open(STATIONS, "w") as f:
        json.dump(table, f)


class Seismograms(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(1)
        self.traces = rng.standard_normal((n, 3, 1024), dtype=np.float32)
        self.arrival = rng.integers(100, 900, n)
        for trace, at in zip(self.traces, self.arrival):
            trace[:, at : at + 80] *= 4
        self.gains = None

    def open(self):
        with open(STATIONS) as f:
            self.gains = [row["gain"] for row in json.load(f).values()]

    def __len__(self):
        return len(self.traces)

    def __getitem__(self, i):
        return torch.from_numpy(self.traces[i] * np.float32(self.gains[i])), self.arrival[i] / 1024


def connect(worker_id):
    get_worker_info().dataset.open()


class Picker(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(3, 32, 11, stride=2, padding=5),
            nn.ReLU(),
            nn.Conv1d(32, 48, 11, stride=2, padding=5),
            nn.ReLU(),
            nn.Conv1d(48, 48, 11, stride=2, padding=5),
            nn.ReLU(),
        )
        self.head = nn.Linear(48 * 128, 1)

    def forward(self, x):
        return self.head(self.body(x).flatten(1)).squeeze(1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    write_stations()
    loader = DataLoader(
        Seismograms(320),
        batch_size=32,
        shuffle=True,
        num_workers=2,
        worker_init_fn=connect,
        **SETTINGS,
    )
    picker = Picker()
    opt = torch.optim.Adam(picker.parameters(), lr=3e-4)
    n = 0
    t0 = time.perf_counter()
    for epoch in range(12):
        for x, y in loader:
            opt.zero_grad()
            loss = (picker(x) - y.float()).abs().mean()
            loss.backward()
            opt.step()
            n += 1
    print("final loss", loss.item())
    print(f"trained {n} steps in {time.perf_counter() - t0:.3f} s")
