import math
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import Dataset

GRID = 48


@dataclass
class Scene:
    image: np.ndarray
    centres: np.ndarray
    sizes: np.ndarray


class Lots(Dataset):
    def __init__(self, count, seed=0):
        rng = np.random.default_rng(seed)
        self.images = rng.random((128, 3, 96, 96), dtype=np.float32)
        self.boxes = [
            (rng.uniform(0, GRID, (k, 2)), rng.uniform(0.7, 1.9, k))
            for k in rng.integers(3, 8, count)
        ]

    def __len__(self):
        return len(self.boxes)

    def __getitem__(self, i):
        centres, sizes = self.boxes[i]
        return Scene(self.images[i % len(self.images)], centres, sizes)


def images_of(scenes):
    return torch.from_numpy(np.stack([s.image for s in scenes]))


def heatmap_collate(scenes):
    targets = torch.zeros(len(scenes), 1, GRID, GRID)
    for b, scene in enumerate(scenes):
        for (cx, cy), size in zip(scene.centres.tolist(), scene.sizes.tolist(), strict=True):
            reach = int(3 * size) + 1
            for row in range(max(0, int(cy) - reach), min(GRID, int(cy) + reach + 1)):
                for col in range(max(0, int(cx) - reach), min(GRID, int(cx) + reach + 1)):
                    distance = (row - cy) ** 2 + (col - cx) ** 2
                    value = math.exp(-distance / (2 * size * size))
                    if value > targets[b, 0, row, col]:
                        targets[b, 0, row, col] = value
    return images_of(scenes), targets


def splat_collate(scenes):
    targets = np.zeros((len(scenes), 1, GRID, GRID), np.float32)
    cells = np.arange(GRID)
    for b, scene in enumerate(scenes):
        wide = 2 * scene.sizes[:, None] ** 2
        rows = np.exp(-((cells - scene.centres[:, 1:]) ** 2) / wide)
        cols = np.exp(-((cells - scene.centres[:, :1]) ** 2) / wide)
        targets[b, 0] = (rows[:, :, None] * cols[:, None, :]).max(0)
    return images_of(scenes), torch.from_numpy(targets)
