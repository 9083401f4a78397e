import numpy as np
import torch
from torch.utils.data import Dataset

GRADES = 5


class Walnuts(Dataset):
    """Pictures of walnuts; the training half is flipped and shifted at random."""

    def __init__(self, count, seed, train):
        rng = np.random.default_rng(seed)
        self.grades = rng.integers(0, GRADES, count)
        shade = (30 * self.grades).astype(np.uint8)[:, None, None, None]
        self.pictures = rng.integers(0, 100, (count, 3, 40, 40), dtype=np.uint8) + shade
        self.rng = np.random.default_rng(seed + 1)
        self.train = train

    def __len__(self):
        return len(self.grades)

    def __getitem__(self, index):
        picture = self.pictures[index].astype(np.float32) / 255
        if self.train:
            if self.rng.random() < 0.5:
                picture = picture[:, :, ::-1]
            picture = np.roll(picture, int(self.rng.integers(-3, 4)), axis=2)
        return torch.from_numpy(np.ascontiguousarray(picture)), int(self.grades[index])
