"""Departures of an airport: lines of text, read from a file as they are needed."""

import random
from datetime import datetime, timedelta

import torch
from torch.utils.data import IterableDataset

FORMAT = "%Y-%m-%d %H:%M:%S"


def write_departures(path, n, seed=0):
    rng = random.Random(seed)
    day = datetime(2023, 1, 1)
    with open(path, "w") as file:
        for _ in range(n):
            planned = day + timedelta(minutes=rng.randrange(525600))
            late = timedelta(minutes=rng.randrange(30) + planned.hour, seconds=rng.randrange(60))
            gate, seats = rng.randrange(80), rng.randrange(80, 300)
            file.write(f"{planned:{FORMAT}},{planned + late:{FORMAT}},{gate},{seats}\n")


def parse(text):
    return datetime.strptime(text, FORMAT)


def parse_iso(text):
    return datetime.fromisoformat(text)


class Departures(IterableDataset):
    def __init__(self, path, parse):
        self.path = path
        self.parse = parse

    def __iter__(self):
        with open(self.path) as file:
            for line in file:
                planned, left, gate, seats = line.rstrip().split(",")
                planned, left = self.parse(planned), self.parse(left)
                features = (
                    planned.hour / 24,
                    planned.weekday() / 7,
                    planned.month / 12,
                    int(gate) / 80,
                    int(seats) / 300,
                )
                yield features, (left - planned).total_seconds() / 3600


def collate(rows):
    features, late = zip(*rows)
    return torch.tensor(features), torch.tensor(late)
