import numpy as np


def readings(n_steps, rows, columns, seed=0):
    """Load, voltage and so on of substations, as they come in; the last column is to be told."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(0, 1, (columns, columns)) / columns**0.5
    level = rng.normal(0, 5, columns)
    for step in range(n_steps):
        x = rng.normal(0, 1, (rows, columns)) @ mix + level + 0.01 * step
        yield x, np.tanh(x[:, :8] - level[:8]).sum(1)


class Scaler:
    """Mean and spread of what has been seen."""

    def __init__(self, keep=None):
        self.keep = keep
        self.seen = None

    def update(self, x):
        self.seen = x if self.seen is None else np.concatenate([self.seen, x])
        if self.keep:
            self.seen = self.seen[-self.keep :]

    def scale(self, x):
        return (x - self.seen.mean(0)) / (self.seen.std(0) + 1e-6)
