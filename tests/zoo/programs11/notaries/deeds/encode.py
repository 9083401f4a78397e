import numpy as np


class SoftBins:
    """Each number as its soft memberships in the bins of its column."""

    def __init__(self, table, bins):
        table = table.astype(np.float64)
        levels = np.linspace(0.0, 1.0, bins + 2)[1:-1]
        self.edges = np.quantile(table, levels, axis=0).T
        self.width = np.maximum(table.std(axis=0), 1e-6)[:, None] / 8

    def __call__(self, rows):
        z = (rows[:, :, None] - self.edges) / self.width
        z = 1.0 / (1.0 + np.exp(-z))
        return z.reshape(len(rows), -1).astype(np.float32)
