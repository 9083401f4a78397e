"""Sequences of radar frames in compressed shards, read one shard after the other."""

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
        paths.append(f"shard-{s:03d}.npz")
        np.savez_compressed(paths[-1], rain=rain.astype(np.float32))
    return paths


class RadarStream(IterableDataset):
    def __init__(self, paths, batch_size):
        self.paths = paths
        self.batch_size = batch_size

    def __iter__(self):
        info = get_worker_info()
        mine = self.paths[info.id :: info.num_workers] if info else self.paths
        for path in mine:
            with np.load(path) as shard:
                rain = np.log1p(shard["rain"])
            order = np.random.default_rng(len(path)).permutation(len(rain))
            for i in range(0, len(rain), self.batch_size):
                batch = rain[order[i : i + self.batch_size]]
                yield torch.from_numpy(batch[:, :-1]), torch.from_numpy(batch[:, -1:])
