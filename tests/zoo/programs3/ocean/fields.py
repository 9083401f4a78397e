import numpy as np
from torch.utils.data import Dataset

SIDE = 48


class Fields(Dataset):
    def __init__(self, count, prepare=None, seed=0):
        rng = np.random.default_rng(seed)
        y, x = np.mgrid[0 : 6 : SIDE * 1j, 0 : 6 : SIDE * 1j].astype(np.float32)
        phase = rng.uniform(0, 6, (count, 2, 1, 1)).astype(np.float32)
        self.fields = 288 + 4 * np.sin(x + phase[:, 0]) * np.cos(y + phase[:, 1])
        self.prepare = prepare

    def __len__(self):
        return len(self.fields)

    def __getitem__(self, index):
        if self.prepare is None:
            return self.fields[index]
        return self.prepare(self.fields[index], np.random.default_rng(index))


def standardize(field, rng):
    """Clip outliers, remove the trend, flip at random, hide a few clouds."""
    low, high = np.percentile(field, [1, 99])
    field = np.clip(field + rng.normal(0, 0.2, field.shape), low, high)
    rows = np.arange(SIDE)
    y, x = np.meshgrid(rows, rows, indexing="ij")
    terms = np.stack([np.ones(SIDE * SIDE), y.ravel(), x.ravel(), (x * y).ravel()], 1)
    trend = terms @ np.linalg.lstsq(terms, field.ravel(), rcond=None)[0]
    field = field - trend.reshape(SIDE, SIDE)
    field /= field.std() + 1e-6
    if rng.random() < 0.5:
        field = field[:, ::-1]
    clear = np.ones((SIDE, SIDE))
    for cy, cx, radius in zip(*rng.uniform([[0], [0], [2]], [[SIDE], [SIDE], [5]], (3, 24))):
        clear[(y - cy) ** 2 + (x - cx) ** 2 < radius**2] = 0
    return np.stack([field * clear, clear, field]).astype(np.float32)
