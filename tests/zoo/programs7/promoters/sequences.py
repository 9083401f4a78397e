import random

import numpy as np

BASES = "ACGT"


def make(count, length, seed=0):
    """Return sequences and whether they have the motif."""
    rng = random.Random(seed)
    found = []
    for i in range(count):
        letters = rng.choices(BASES, k=length)
        if i % 2:
            at = rng.randrange(length - 6)
            letters[at : at + 6] = "TATAAT"
        found.append(("".join(letters), i % 2))
    return found


def one_hot(batch):
    length = len(batch[0])
    encoded = np.zeros((len(batch), length, 4), np.float32)
    for row, sequence in enumerate(batch):
        for column, base in enumerate(sequence):
            encoded[row, column, BASES.index(base)] = 1.0
    return encoded


_CODE = np.zeros((256, 4), np.float32)
for _i, _base in enumerate(BASES):
    _CODE[ord(_base), _i] = 1.0


def one_hot_table(batch):
    letters = np.frombuffer("".join(batch).encode(), np.uint8)
    return _CODE[letters].reshape(len(batch), -1, 4)
