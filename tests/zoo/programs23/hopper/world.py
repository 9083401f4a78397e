"""A field of linked masses that is to hop to the right, many copies side by side."""

import numpy as np

MASSES = 10
OBSERVATION = 4 * MASSES
ACTION = MASSES - 1
SUBSTEPS = 8
DT = np.float32(0.01)


class World:
    def __init__(self, copies, seed):
        self.copies = copies
        self.rng = np.random.default_rng(seed)

    def reset(self):
        spread = np.arange(MASSES, dtype=np.float32)
        self.position = np.zeros((self.copies, MASSES, 2), dtype=np.float32)
        self.position[:, :, 0] = spread + self.rng.normal(0, 0.05, (self.copies, MASSES))
        self.position[:, :, 1] = 0.5
        self.velocity = np.zeros_like(self.position)
        return self.observe()

    def observe(self):
        flat = (self.copies, 2 * MASSES)
        middle = self.position - self.position.mean(axis=1, keepdims=True)
        return np.concatenate([middle.reshape(flat), self.velocity.reshape(flat)], axis=1)

    def advance(self, action):
        rest = 1 + np.float32(0.4) * np.tanh(action)[:, :, None]
        for _ in range(SUBSTEPS):
            self.integrate(rest)
        return self.observe(), self.velocity[:, :, 0].mean(axis=1)

    def integrate(self, rest):
        gap = np.diff(self.position, axis=1)
        length = np.sqrt(np.square(gap).sum(axis=2, keepdims=True)) + np.float32(1e-6)
        pull = (length - rest) * gap / length
        force = np.zeros_like(self.position)
        force[:, :-1] += 8 * pull
        force[:, 1:] -= 8 * pull
        force[:, :, 1] -= 1
        force[:, :, 0] -= self.velocity[:, :, 0] * (self.position[:, :, 1] < 0.05)
        self.velocity = np.float32(0.995) * self.velocity + DT * force
        self.position = self.position + DT * self.velocity
        np.maximum(self.position[:, :, 1], 0, out=self.position[:, :, 1])
