import random

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, Sampler


class Letters(Dataset):
    """Most letters are short; a few are whole reports."""

    def __init__(self, count, seed=23):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(20, 40, count)
        reports = rng.choice(count, count // 200, replace=False)
        lengths[reports] = rng.integers(420, 512, len(reports))
        self.texts = [torch.from_numpy(rng.integers(1, 3000, n)) for n in lengths]
        self.urgent = torch.from_numpy(rng.integers(0, 2, count)).float()

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i], self.urgent[i]


def pad(rows):
    texts, urgent = zip(*rows)
    return pad_sequence(texts, batch_first=True), torch.stack(urgent)


class ByLength(Sampler):
    """Batches of letters of similar length, in random order."""

    def __init__(self, dataset, batch_size, seed=0):
        order = sorted(range(len(dataset)), key=lambda i: len(dataset.texts[i]))
        self.batches = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
        self.random = random.Random(seed)

    def __iter__(self):
        self.random.shuffle(self.batches)
        return iter(self.batches)

    def __len__(self):
        return len(self.batches)
