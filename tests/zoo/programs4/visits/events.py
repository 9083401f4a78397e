import numpy as np
import torch

N_CODES = 300


class Histories:
    """Visits of patients. Most have a few; some have been coming for years."""

    def __init__(self, n, seed=0, max_len=None):
        rng = np.random.default_rng(seed)
        lengths = np.clip(rng.normal(28, 6, n), 8, None)
        lengths[rng.random(n) < 0.004] *= rng.uniform(7, 9)
        self.codes = [rng.integers(1, N_CODES, int(length)) for length in lengths]
        self.risk = np.array([float((c % 11 == 0).mean() > 0.09) for c in self.codes])
        self.max_len = max_len
        self.rng = rng

    def batch(self, size):
        picked = self.rng.integers(0, len(self.codes), size)
        rows = [self.codes[i][-self.max_len :] if self.max_len else self.codes[i] for i in picked]
        padded = torch.zeros(size, max(len(r) for r in rows), dtype=torch.long)
        for k, row in enumerate(rows):
            padded[k, : len(row)] = torch.from_numpy(row)
        return padded, torch.tensor(self.risk[picked], dtype=torch.float32)
