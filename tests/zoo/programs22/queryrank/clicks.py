"""Result lists with relevance grades, of different lengths."""

import numpy as np
import torch
from torch.utils.data import Dataset

FEATURES = 48


class ResultLists(Dataset):
    def __init__(self, queries, seed):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(30, 65, size=queries)
        taste = rng.normal(size=FEATURES)
        self.lists = []
        for length in lengths:
            features = rng.normal(size=(length, FEATURES)).astype(np.float32)
            score = features @ taste + rng.normal(size=length)
            grades = np.clip(np.floor(score / 4 + 1), 0, 3).astype(np.float32)
            self.lists.append((torch.from_numpy(features), torch.from_numpy(grades)))

    def __len__(self):
        return len(self.lists)

    def __getitem__(self, index):
        return self.lists[index]
