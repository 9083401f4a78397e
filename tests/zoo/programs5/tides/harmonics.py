import numpy as np

PERIODS = np.array([12.42, 12.0, 23.93, 25.82, 12.66, 6.21])


def make_tides(n_hours, n_ports, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(n_hours)[:, None, None]
    size = rng.gamma(2, 0.5, (n_ports, len(PERIODS)))
    phase = rng.uniform(0, 2 * np.pi, size.shape)
    level = (size * np.sin(2 * np.pi * t / PERIODS + phase)).sum(-1)
    return (level + rng.normal(0, 0.1, level.shape)).astype(np.float32)


def windows(levels, n, past, ahead, rng):
    start = rng.integers(len(levels) - past - ahead, size=n)
    port = rng.integers(levels.shape[1], size=n)
    rows = levels[start[:, None] + np.arange(past + ahead), port[:, None]]
    return rows[:, :past], rows[:, past:]
