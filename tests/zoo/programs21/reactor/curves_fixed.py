import numpy as np

AHEAD = 96


class Experiments:
    """Conversion over time in a batch reactor; few samples are drawn, the curve is asked for."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.rate = rng.uniform(0.5, 4.0, (count, 1))
        self.delay = rng.uniform(0.0, 0.3, (count, 1))
        self.level = rng.uniform(0.4, 1.0, (count, 1))
        self.ripple = rng.uniform(0.0, 0.1, (count, 1))
        self.rng = rng

    def measure(self, which, times):
        since = np.maximum(times - self.delay[which], 0)
        y = self.level[which] * (1 - np.exp(-self.rate[which] * since))
        y = y + self.ripple[which] * np.sin(20 * times)
        return y + self.rng.normal(0, 0.01, times.shape)

    def sample(self, batch, n, most):
        which = self.rng.integers(0, len(self.rate), batch)
        times = self.rng.uniform(0, 1, (batch, n + AHEAD))
        values = self.measure(which, times)
        context = np.stack([times[:, :n], values[:, :n]], -1)
        shown = np.zeros((batch, most), np.float32)
        shown[:, :n] = 1
        context = np.pad(context, ((0, 0), (0, most - n), (0, 0)))
        return (
            shown,
            context.astype(np.float32),
            times[:, n:, None].astype(np.float32),
            values[:, n:].astype(np.float32),
        )
