import numpy as np
import torch
from sampling import SAMPLERS


class ScanDataset(torch.utils.data.Dataset):
    """Noisy point clouds of simple solids."""

    SHAPES = ("ball", "box", "tube", "cone", "ring", "plane")

    def __init__(self, n_scans, n_points=384, n_picked=64, sampler="fps", seed=0):
        self.n_scans, self.n_points, self.n_picked = n_scans, n_points, n_picked
        self.sampler = SAMPLERS[sampler]
        self.seed = seed

    def __len__(self):
        return self.n_scans

    def raw_scan(self, shape, rng):
        u, v = rng.uniform(0, 2 * np.pi, self.n_points), rng.uniform(-1, 1, self.n_points)
        r = np.sqrt(1 - v**2)
        xyz = {
            "ball": (r * np.cos(u), r * np.sin(u), v),
            "box": (np.sign(np.cos(u)), np.sin(3 * u), v),
            "tube": (np.cos(u), np.sin(u), v),
            "cone": (v * np.cos(u), v * np.sin(u), v),
            "ring": ((1 + 0.3 * v) * np.cos(u), (1 + 0.3 * v) * np.sin(u), 0.3 * r),
            "plane": (np.cos(u) * v, v, 0 * v),
        }[shape]
        return np.stack(xyz, 1) + rng.normal(0, 0.03, (self.n_points, 3))

    def __getitem__(self, i):
        rng = np.random.default_rng([self.seed, i])
        label = i % len(self.SHAPES)
        points = self.raw_scan(self.SHAPES[label], rng)
        q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        points = points @ q.T
        centers = points[self.sampler(points, self.n_picked)]
        # the neighbourhood of each center
        d = ((centers[:, None] - points[None]) ** 2).sum(-1)
        near = np.argpartition(d, 16, axis=1)[:, :16]
        groups = points[near] - centers[:, None]
        return (
            torch.from_numpy(groups.astype(np.float32)),
            torch.from_numpy(centers.astype(np.float32)),
            label,
        )
