import zlib
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import IterableDataset

SHAPE = (1, 96, 96)


def write_shards(folder, shards, samples, seed=21):
    rng = np.random.default_rng(seed)
    Path(folder).mkdir(exist_ok=True)
    paths = []
    for i in range(shards):
        pings = rng.integers(0, 40, (samples, *SHAPE), dtype=np.uint8).astype(np.float32)
        path = Path(folder) / f"shard-{i:04d}.z"
        path.write_bytes(zlib.compress(pings.tobytes(), 1))
        paths.append(path)
    return paths


def open_shard(path):
    raw = zlib.decompress(path.read_bytes())
    pings = np.log1p(np.frombuffer(raw, dtype=np.float32).reshape(-1, *SHAPE))
    level = pings.mean(axis=(1, 2, 3), keepdims=True)
    return (pings - level) / pings.std(axis=(1, 2, 3), keepdims=True)


class Pings(IterableDataset):
    """Shards in turn, each opened whole, its samples in random order."""

    def __init__(self, paths, passes):
        self.paths = paths
        self.passes = passes

    def __iter__(self):
        rng = np.random.default_rng(0)
        for _ in range(self.passes):
            for path in self.paths:
                pings = open_shard(path)
                for index in rng.permutation(len(pings)):
                    yield torch.from_numpy(pings[index]), int(index) % 6
