"""Folk tunes as notes; a window of notes and the one that follows it."""

import random

import numpy as np


class Tunes:
    def __init__(self, n_notes, window=32, seed=0):
        rng = np.random.default_rng(seed)
        steps = rng.choice([-2, -1, 0, 1, 2, 5, -5], n_notes)
        self.notes = np.abs(np.cumsum(steps)) % 48
        self.window = window

    def __len__(self):
        return len(self.notes) - self.window

    def batches(self, size, n):
        """Each window once, in any order, until all were seen or n batches are made."""
        order = list(range(len(self)))
        random.shuffle(order)
        for _ in range(n):
            chosen = []
            while len(chosen) < size and order:
                chosen.append(order.pop(0))
            rows = np.array(chosen)[:, None] + np.arange(self.window + 1)
            yield self.notes[rows]

    def batches_of_array(self, size, n):
        order = np.random.default_rng(0).permutation(len(self))
        for k in range(n):
            chosen = order[k * size : (k + 1) * size]
            yield self.notes[chosen[:, None] + np.arange(self.window + 1)]
