import numpy as np


class WalkerBatch:
    """Many copies of a small point-mass world, stepped together."""

    def __init__(self, n, obs_dim=16, seed=0):
        self.n, self.obs_dim = n, obs_dim
        self.rng = np.random.default_rng(seed)
        self.mix = self.rng.normal(0, 0.5, (4, obs_dim)).astype(np.float32)
        self.state = self.rng.normal(0, 1, (n, 4)).astype(np.float32)

    def observe(self):
        return np.tanh(self.state @ self.mix)

    def step(self, action):
        force = np.stack([(action == 1) * 1.0 - (action == 2), (action == 3) * 1.0], 1)
        self.state[:, 2:] = 0.95 * self.state[:, 2:] + 0.1 * force
        self.state[:, :2] += 0.1 * self.state[:, 2:]
        distance = np.linalg.norm(self.state[:, :2], axis=1)
        done = (distance > 4) | (self.rng.random(self.n) < 0.01)
        reward = (1 - 0.3 * distance).astype(np.float32)
        fresh = self.rng.normal(0, 1, (int(done.sum()), 4))
        self.state[done] = fresh
        return self.observe(), reward, done.astype(np.float32)
