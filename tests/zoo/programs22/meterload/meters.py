import numpy as np

WEEK = 168
DAY = 24


def load_curves(meters, seed):
    """A week of hourly consumption of each meter and the day that follows."""
    rng = np.random.default_rng(seed)
    hours = np.arange(WEEK + DAY)
    phase = rng.uniform(0, 2 * np.pi, size=(meters, 1))
    level = rng.gamma(3.0, 0.5, size=(meters, 1))
    curves = level * (1.5 + np.sin(2 * np.pi * hours / 24 + phase))
    curves += 0.1 * rng.normal(size=curves.shape)
    curves = np.abs(curves).astype(np.float32)
    return curves[:, :WEEK], curves[:, WEEK:]
