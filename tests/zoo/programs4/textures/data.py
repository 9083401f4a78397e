import os

import numpy as np
from torch.utils.data import Dataset


def write_archive(path, n, size=32, seed=0):
    if os.path.exists(path):
        return
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size] / size
    phase = rng.uniform(0, 6.28, (n, 1, 1))
    fx, fy = rng.integers(1, 6, (2, n, 1, 1))
    images = np.sin(6.28 * (fx * x + fy * y) + phase) + rng.normal(0, 0.05, (n, size, size))
    np.savez(path, images=images.astype(np.float32), order=rng.permutation(n))


class TextureArchive(Dataset):
    """Random crops of an archive, which every process opens for itself."""

    def __init__(self, path, n, per_epoch):
        self.path, self.n, self.per_epoch = path, n, per_epoch
        self.images = None

    def _open(self):
        with np.load(self.path) as archive:
            self.images = archive["images"]
            self.order = archive["order"]

    def __len__(self):
        return self.per_epoch

    def __getitem__(self, i):
        if self.images is None:
            self._open()
        image = self.images[self.order[(i * 7919) % self.n]]
        dx, dy = i % 5, i // 5 % 5
        return np.ascontiguousarray(np.roll(image, (dx, dy), (0, 1)))[None]
