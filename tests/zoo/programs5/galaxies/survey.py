"""Cut-outs of galaxies in packed shards. A shard is unpacked as a whole, then read row by row."""

import lzma

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

SIDE = 32


def write_shards(folder, n_shards, rows, seed=0):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    paths = []
    for k in range(n_shards):
        tilt = rng.uniform(-0.9, 0.9, rows)
        images = np.exp(-4 * (x**2 + y**2 + 2 * tilt[:, None, None] * x * y))
        images += rng.normal(0, 0.03, images.shape)
        packed = np.concatenate([tilt[:, None], images.reshape(rows, -1)], 1).astype(np.float32)
        path = folder / f"shard-{k:03d}.xz"
        path.write_bytes(lzma.compress(packed.tobytes(), preset=0))
        paths.append(path)
    return paths


class Survey(IterableDataset):
    def __init__(self, paths, epochs):
        self.paths = paths
        self.epochs = epochs

    def unpack(self, path):
        rows = np.frombuffer(lzma.decompress(path.read_bytes()), np.float32)
        return rows.reshape(-1, 1 + SIDE * SIDE)

    def __iter__(self):
        info = get_worker_info()
        first, jump = (info.id, info.num_workers) if info else (0, 1)
        for _ in range(self.epochs):
            for path in self.paths[first::jump]:
                for row in self.unpack(path):
                    yield torch.from_numpy(row[1:].reshape(1, SIDE, SIDE).copy()), row[0].item()
