import numpy as np
import torch
from torch.utils.data import Dataset


class Digits(Dataset):
    """Blobs that stand for digits, held in memory."""

    def __init__(self, count, transform, size=32):
        rng = np.random.default_rng(1)
        prototypes = rng.normal(size=(10, size, size)).astype(np.float32)
        self.labels = rng.integers(0, 10, count)
        noise = rng.normal(0, 0.7, (count, size, size)).astype(np.float32)
        self.pictures = prototypes[self.labels] + noise
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = self.transform(self.pictures[index])
        return torch.from_numpy(picture.astype(np.float32))[None], int(self.labels[index])
