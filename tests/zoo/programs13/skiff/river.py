"""Many skiffs on a river: keep to the middle with left, straight or right."""

import numpy as np

ACTIONS = 3
SIGHT = 24


class River:
    def __init__(self, count, seed):
        self.rng = np.random.default_rng(seed)
        self.count = count
        self.bends = self.rng.normal(0, 1, (count, 512)).cumsum(1) * 0.05
        self.reset()

    def reset(self):
        self.offset = self.rng.normal(0, 0.5, self.count)
        self.drift = np.zeros(self.count)
        self.time = self.rng.integers(0, 400, self.count)
        return self.observe()

    def observe(self):
        rows = np.arange(self.count)[:, None]
        ahead = self.bends[rows, self.time[:, None] + np.arange(SIGHT - 2)]
        ahead = ahead - ahead[:, :1]
        return np.concatenate([self.offset[:, None], self.drift[:, None], ahead], axis=1).astype(
            np.float32
        )

    def step(self, action):
        rows = np.arange(self.count)
        turn = self.bends[rows, self.time + 1] - self.bends[rows, self.time]
        self.drift = 0.8 * self.drift + 0.1 * (action - 1)
        self.offset = self.offset + self.drift - turn
        self.time = self.time + 1
        return self.observe(), (np.exp(-(self.offset**2))).astype(np.float32)
