"""Cut-outs of galaxies in shards at an archive. A shard is fetched as a whole, then read by row."""

import time

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

SIDE = 32
BYTES_A_SECOND = 5e6  # what the line to the archive gives


def write_shards(folder, n_shards, rows, seed=0):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    paths = []
    for k in range(n_shards):
        tilt = rng.uniform(-0.9, 0.9, rows)
        images = np.exp(-4 * (x**2 + y**2 + 2 * tilt[:, None, None] * x * y))
        images += rng.normal(0, 0.03, images.shape)
        packed = np.concatenate([tilt[:, None], images.reshape(rows, -1)], 1).astype(np.float32)
        path = folder / f"shard-{k:03d}.f32"
        path.write_bytes(packed.tobytes())
        paths.append(path)
    return paths


class Survey(IterableDataset):
    def __init__(self, paths, epochs):
        self.paths = paths
        self.epochs = epochs

    def fetch(self, path):
        content = path.read_bytes()
        time.sleep(len(content) / BYTES_A_SECOND)
        return np.frombuffer(content, np.float32).reshape(-1, 1 + SIDE * SIDE)

    def __iter__(self):
        info = get_worker_info()
        first, jump = (info.id, info.num_workers) if info else (0, 1)
        for _ in range(self.epochs):
            for path in self.paths[first::jump]:
                for row in self.fetch(path):
                    yield torch.from_numpy(row[1:].reshape(1, SIDE, SIDE).copy()), row[0].item()
