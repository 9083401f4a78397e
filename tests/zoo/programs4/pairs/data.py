import numpy as np
import torch
from torch.utils.data import Dataset


class TwoCrops(Dataset):
    """Two noisy crops of the same picture."""

    def __init__(self, n, size=40, crop=32, seed=0):
        rng = np.random.default_rng(seed)
        coarse = rng.normal(0, 1, (n, 3, size // 4, size // 4)).astype(np.float32)
        self.pictures = coarse.repeat(4, 2).repeat(4, 3)
        self.size, self.crop = size, crop

    def __len__(self):
        return len(self.pictures)

    def view(self, picture):
        y, x = np.random.randint(0, self.size - self.crop + 1, 2)
        view = picture[:, y : y + self.crop, x : x + self.crop]
        if np.random.rand() < 0.5:
            view = view[:, :, ::-1]
        return torch.from_numpy(np.ascontiguousarray(view))

    def __getitem__(self, i):
        picture = self.pictures[i]
        return self.view(picture), self.view(picture)
