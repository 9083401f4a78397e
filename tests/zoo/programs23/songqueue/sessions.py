import numpy as np
import torch


class Sessions:
    """Listening sessions: the last tracks, what was played next, and tracks nobody asked for."""

    def __init__(self, count, tracks, history, seed):
        rng = np.random.default_rng(seed)
        popularity = np.minimum(rng.zipf(1.2, size=(count, history + 1)), tracks) - 1
        scattered = popularity.astype(np.int64) * 7919 % tracks
        self.history = torch.from_numpy(scattered[:, :-1].copy())
        self.following = torch.from_numpy(scattered[:, -1].copy())
        self.hour = torch.from_numpy(rng.integers(0, 24, size=count))
        self.tracks = tracks

    def iterate(self, batch_size, seed):
        g = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(self.following), generator=g)
        for start in range(0, len(order) - batch_size + 1, batch_size):
            rows = order[start : start + batch_size]
            noise = torch.randint(0, self.tracks, (256,), generator=g)
            yield self.history[rows], self.hour[rows], self.following[rows], noise
