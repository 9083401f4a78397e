"""Sequences of radar frames in shards, fetched one after the other from the bucket."""

import os
import time

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info


def write_shards(n_shards, per_shard, frames=6, size=40, seed=0):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size]
    paths = []
    for s in range(n_shards):
        at = rng.uniform(8, size - 8, (per_shard, 1, 2)) + np.arange(frames)[
            None, :, None
        ] * rng.uniform(-1.5, 1.5, (per_shard, 1, 2))
        d = (x - at[..., 0, None, None]) ** 2 + (y - at[..., 1, None, None]) ** 2
        rain = np.exp(-d / 20) * 200 + rng.uniform(0, 12, d.shape)
        paths.append(f"shard-{s:03d}.npy")
        np.save(paths[-1], rain.astype(np.float32))
    return paths


def fetch(path, rate=40e6):
    """The bucket gives each reader some 40 MB/s."""
    time.sleep(os.path.getsize(path) / rate)
    return np.load(path)


class RadarStream(IterableDataset):
    def __init__(self, paths, batch_size, passes=1):
        self.paths = list(paths) * passes
        self.batch_size = batch_size

    def __iter__(self):
        info = get_worker_info()
        mine = self.paths[info.id :: info.num_workers] if info else self.paths
        for path in mine:
            rain = np.log1p(fetch(path))
            order = np.random.default_rng(len(path)).permutation(len(rain))
            for i in range(0, len(rain), self.batch_size):
                batch = rain[order[i : i + self.batch_size]]
                yield torch.from_numpy(batch[:, :-1]), torch.from_numpy(batch[:, -1:])
