"""Sessions of an online shop: what was looked at, what was bought, and what was not."""

import numpy as np


class SessionSampler:
    def __init__(self, items, length, batch_size, negatives, seed):
        self.rng = np.random.default_rng(seed)
        self.items, self.length, self.batch_size, self.negatives = (
            items,
            length,
            batch_size,
            negatives,
        )
        weights = 1.0 / np.arange(1, items + 1) ** 0.75
        self.cumulative = np.cumsum(weights / weights.sum()).astype(np.float64)

    def draw(self, shape):
        return (
            np.searchsorted(self.cumulative, self.rng.random(shape)).astype(np.int32) % self.items
        )

    def batch(self):
        history = self.draw((self.batch_size, self.length))
        bought = self.draw((self.batch_size, 1))
        return history, np.concatenate([bought, self.hard_negatives(history)], axis=1)

    def hard_negatives(self, history):
        """Those of many that are closest in the catalogue to what was looked at last."""
        candidates = self.draw((self.batch_size, 32 * self.negatives))
        distance = np.abs(candidates - history[:, -1:])
        closest = np.argpartition(distance, self.negatives, axis=1)[:, : self.negatives]
        return np.take_along_axis(candidates, closest, axis=1)
