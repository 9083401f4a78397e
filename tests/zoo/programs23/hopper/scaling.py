import numpy as np


class Scaler:
    """Brings observations to zero mean and unit variance over all that has been seen."""

    def __init__(self, size):
        self.seen = np.zeros((0, size), dtype=np.float32)
        self.mean = np.zeros(size, dtype=np.float32)
        self.std = np.ones(size, dtype=np.float32)

    def update(self, observations):
        self.seen = np.concatenate([self.seen, observations])
        self.mean = self.seen.mean(axis=0)
        self.std = self.seen.std(axis=0) + np.float32(1e-3)

    def __call__(self, observations):
        return (observations - self.mean) / self.std


class RunningScaler(Scaler):
    def __init__(self, size):
        super().__init__(size)
        self.count = 0
        self.total = np.zeros(size)
        self.squares = np.zeros(size)

    def update(self, observations):
        self.count += len(observations)
        self.total += observations.sum(axis=0)
        self.squares += np.einsum("ij,ij->j", observations, observations)
        mean = self.total / self.count
        variance = np.maximum(self.squares / self.count - mean**2, 0)
        self.mean = mean.astype(np.float32)
        self.std = np.sqrt(variance).astype(np.float32) + np.float32(1e-3)
