import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

from .shards import read_shard


class ShardStream(IterableDataset):
    def __init__(self, paths, length, batch, passes):
        self.paths, self.length = paths, length
        self.batch, self.passes = batch, passes

    def __iter__(self):
        rng = np.random.default_rng(0)
        for path in self.paths * self.passes:
            labels, traces = read_shard(path, self.length)
            order = rng.permutation(len(labels))
            for at in range(0, len(order), self.batch):
                rows = order[at : at + self.batch]
                x = torch.from_numpy(traces[rows].astype(np.float32) / 4000.0)
                yield x, torch.from_numpy(labels[rows].astype(np.int64))


def build_loader(paths, cfg):
    stream = ShardStream(paths, cfg.length, cfg.batch, cfg.passes)
    return DataLoader(stream, batch_size=None, num_workers=1, prefetch_factor=cfg.prefetch)
