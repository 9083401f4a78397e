import numpy as np
import torch
from torch.utils.data import Dataset


class Patches(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(2)
        self.labels = rng.integers(0, 5, count)
        kernels = rng.normal(size=(5, 3, 40, 40)).astype(np.float32)
        self.patches = kernels[self.labels] + rng.normal(size=(count, 3, 40, 40)).astype("f4")

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return torch.from_numpy(self.patches[index]), int(self.labels[index])
