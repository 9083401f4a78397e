import random

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

BASES = "ACGT"
COMPLEMENT = str.maketrans("ACGT", "TGCA")
CODES = np.full(256, 4, dtype=np.uint8)
CODES[[ord(base) for base in BASES]] = range(4)
ROWS = np.eye(5, 4, dtype=np.float32)


def one_hot(sequence):
    rows = [[1.0 if base == other else 0.0 for other in BASES] for base in sequence]
    return np.array(rows, dtype=np.float32).T


def one_hot_table(sequence):
    codes = CODES[np.frombuffer(sequence.encode("ascii"), dtype=np.uint8)]
    return np.ascontiguousarray(ROWS[codes].T)


class PromoterStream(IterableDataset):
    """Windows of a random genome; those with a promoter have a TATA box in the middle."""

    def __init__(self, window=800, table=False):
        rng = random.Random(11)
        self.genome = "".join(rng.choices(BASES, k=200_000))
        self.window = window
        self.encode = one_hot_table if table else one_hot

    def __iter__(self):
        info = get_worker_info()
        rng = random.Random(100 + (info.id if info else 0))
        while True:
            start = rng.randrange(len(self.genome) - self.window)
            sequence = self.genome[start : start + self.window]
            label = rng.random() < 0.5
            if label:
                middle = self.window // 2 + rng.randrange(-20, 20)
                sequence = sequence[:middle] + "TATAAAAG" + sequence[middle + 8 :]
            if rng.random() < 0.5:
                sequence = sequence.translate(COMPLEMENT)[::-1]
            yield torch.from_numpy(self.encode(sequence)), float(label)
