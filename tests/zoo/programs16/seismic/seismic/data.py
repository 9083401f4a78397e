import numpy as np
import torch
from torch.utils.data import Dataset


class Traces(Dataset):
    """Three-component seismograms, and the sample at which the wave arrives."""

    def __init__(self, count, length, seed):
        rng = np.random.default_rng(seed)
        self.traces = rng.standard_normal((count, 3, length), dtype=np.float32)
        self.onsets = rng.integers(length // 4, 3 * length // 4, size=count)
        for trace, onset in zip(self.traces, self.onsets):
            trace[:, onset:] *= 3.0

    def __len__(self):
        return len(self.traces)

    def __getitem__(self, index):
        trace = self.traces[index]
        trace = trace / np.abs(trace).max()
        return torch.from_numpy(trace), int(self.onsets[index]) // 8
