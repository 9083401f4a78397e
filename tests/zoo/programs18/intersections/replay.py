import numpy as np


class Replay:
    def __init__(self, size, state, seed=0):
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.states = rng.standard_normal((size, state), dtype=np.float32)
        self.actions = rng.integers(0, 4, size)
        self.rewards = rng.standard_normal(size).astype(np.float32)
        self.errors = rng.random(size)
        self.refresh_arrays()

    def refresh(self):
        """Ranks of all transitions by their error, and the chance to be drawn that follows."""
        order = sorted(range(len(self.errors)), key=lambda i: -self.errors[i])
        chance = [0.0] * len(order)
        for rank, i in enumerate(order):
            chance[i] = 1.0 / (rank + 1) ** 0.7
        total = sum(chance)
        self.bounds = np.cumsum([c / total for c in chance])

    def refresh_arrays(self):
        chance = np.empty(len(self.errors))
        chance[np.argsort(-self.errors)] = np.arange(1, len(self.errors) + 1) ** -0.7
        self.bounds = np.cumsum(chance / chance.sum())

    def sample(self, count):
        i = np.searchsorted(self.bounds, self.rng.random(count)).clip(max=len(self.errors) - 1)
        return i, self.states[i], self.actions[i], self.rewards[i]
