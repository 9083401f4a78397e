"""Auction logs as the exporter leaves them: a compressed file an hour."""

import lzma
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import IterableDataset

FIELDS = 24
NUMBERS = 16
BUCKETS = 20011


def export(folder, hours, rows, seed):
    rng = np.random.default_rng(seed)
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    for hour in range(hours):
        ids = rng.integers(0, 1 << 40, size=(rows, FIELDS))
        numbers = rng.lognormal(size=(rows, NUMBERS)).astype(np.float32)
        clicked = (numbers[:, 0] + rng.normal(size=rows) > 2).astype(np.float32)
        with lzma.open(folder / f"{hour:02d}.xz", "wb", preset=0) as file:
            for column in (ids, numbers, clicked):
                np.save(file, column)
    return sorted(folder.glob("*.xz"))


class AuctionLog(IterableDataset):
    """Hour after hour in random order, the rows of an hour shuffled."""

    def __init__(self, paths, batch_size, seed=0):
        self.paths = list(paths)
        self.batch_size = batch_size
        self.seed = seed

    def read_hour(self, path, rng):
        with lzma.open(path) as file:
            ids, numbers, clicked = (np.load(file) for _ in range(3))
        order = rng.permutation(len(ids))
        return (
            torch.from_numpy((ids * 2654435761 >> 7)[order] % BUCKETS),
            torch.from_numpy(np.log1p(numbers)[order]),
            torch.from_numpy(clicked[order]),
        )

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        for index in rng.permutation(len(self.paths)):
            columns = self.read_hour(self.paths[index], rng)
            yield from zip(*(column.split(self.batch_size) for column in columns))
