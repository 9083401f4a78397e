import itertools
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


WORD = 4
INDEX = {"".join(word): i for i, word in enumerate(itertools.product(BASES, repeat=WORD))}


def words(batch):
    """How often each word of four bases occurs in each sequence."""
    counts = np.zeros((len(batch), len(INDEX)), np.float32)
    for row, sequence in enumerate(batch):
        for i in range(len(sequence) - WORD + 1):
            counts[row, INDEX[sequence[i : i + WORD]]] += 1
    return counts / 2


_DIGIT = np.zeros(256, np.uint8)
_DIGIT[[ord(base) for base in BASES]] = range(4)


def words_by_code(batch):
    digits = _DIGIT[np.frombuffer("".join(batch).encode(), np.uint8)].reshape(len(batch), -1)
    codes = ((digits[:, :-3] * 4 + digits[:, 1:-2]) * 4 + digits[:, 2:-1]) * 4 + digits[:, 3:]
    codes = codes + len(INDEX) * np.arange(len(batch))[:, None]
    counts = np.bincount(codes.ravel(), minlength=len(batch) * len(INDEX))
    return counts.reshape(len(batch), -1).astype(np.float32) / 2
