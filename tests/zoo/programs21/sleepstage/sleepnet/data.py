import numpy as np
import torch

STAGES = ("W", "N1", "N2", "N3", "REM")
BANDS = ((9, 11), (5, 7), (12, 14), (1, 2), (4, 9))


def make_night(cfg, rng):
    stages = rng.integers(0, len(STAGES), cfg.epochs_per_night)
    t = np.arange(cfg.samples) / 20.0
    low = np.array([b[0] for b in BANDS])[stages]
    high = np.array([b[1] for b in BANDS])[stages]
    freq = rng.uniform(low, high)[:, None, None]
    phase = rng.uniform(0, 2 * np.pi, (cfg.epochs_per_night, 2, 1))
    signal = np.sin(2 * np.pi * freq * t + phase)
    signal += rng.normal(0, 0.7, signal.shape)
    return signal.astype(np.float32), stages


class Recordings:
    """All nights in memory; batches are drawn at random."""

    def __init__(self, cfg):
        rng = np.random.default_rng(cfg.seed)
        nights = [make_night(cfg, rng) for _ in range(cfg.nights)]
        self.signal = torch.from_numpy(np.concatenate([s for s, _ in nights]))
        self.stage = torch.from_numpy(np.concatenate([y for _, y in nights]))
        self.generator = torch.Generator().manual_seed(cfg.seed)

    def batches(self, size, count):
        for _ in range(count):
            index = torch.randint(len(self.stage), (size,), generator=self.generator)
            yield self.signal[index], self.stage[index]
