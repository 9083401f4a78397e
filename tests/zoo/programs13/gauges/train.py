"""Forecast the level of a river 12 hours ahead from the last 96."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from archive import HOURS, STATIONS, Archive, start_archive

PAST, AHEAD = 96, 12


class Windows(Dataset):
    def __init__(self, address, count, seed, copy):
        rng = np.random.default_rng(seed)
        self.stations = rng.integers(0, STATIONS, count)
        self.begins = rng.integers(0, HOURS - PAST - AHEAD, count)
        self.archive = Archive(address)
        self.local = Archive(address).query(0, STATIONS, 0, HOURS) if copy else None

    def __len__(self):
        return len(self.stations)

    def __getitem__(self, index):
        station, begin = int(self.stations[index]), int(self.begins[index])
        end = begin + PAST + AHEAD
        if self.local is not None:
            window = self.local[station, begin:end]
        else:
            window = self.archive.query(station, station + 1, begin, end)[0]
        level = window[:PAST].mean()
        window = torch.from_numpy(window - level)
        return window[:PAST, None], window[PAST:]


class Forecaster(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.stem = nn.Conv1d(1, width, 7, stride=2, padding=3)
        self.convs = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(3))
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, AHEAD)

    def forward(self, x):
        x = self.stem(x.transpose(1, 2))
        for conv in self.convs:
            x = x + torch.relu(conv(x))
        states, _ = self.rnn(x.transpose(1, 2)[:, ::2])
        return self.head(states[:, -1])


def run(args):
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    address = start_archive()
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 40, 0.6)
    loss_fn = nn.SmoothL1Loss()
    begin = time.perf_counter()
    data = Windows(address, 1280, args.seed, args.data == "local")
    loader = DataLoader(
        data,
        batch_size=32,
        shuffle=True,
        num_workers=1,
        persistent_workers=True,
        prefetch_factor=4,
    )
    done = 0
    for epoch in range(args.epochs):
        mean = 0.0
        for past, ahead in loader:
            loss = loss_fn(model(past), ahead)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            mean += loss.item() / len(loader)
            done += 1
        print(f"epoch {epoch}: {mean:.4f}", flush=True)
    print(f"trained {done} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", choices=["archive", "local"], default="archive")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=11)
    run(parser.parse_args())
