"""Drones that are to hold a height in gusts. Simulated in NumPy, many at once."""

import numpy as np


class Swarm:
    def __init__(self, n, seed=0):
        self.rng = np.random.default_rng(seed)
        self.state = self.rng.normal(0, 1, (n, 12))

    def fly(self, n_steps=60):
        """Let them fly for a while; return what they saw, did, and how well it went."""
        seen, done, rewards = [], [], []
        for _ in range(n_steps):
            action = self.rng.integers(5, size=len(self.state))
            push = np.zeros((len(self.state), 12))
            push[np.arange(len(push)), action] = 0.2
            gust = self.rng.normal(0, 0.05, self.state.shape)
            seen.append(self.state.astype(np.float32))
            self.state = 0.98 * self.state + 0.1 * np.sin(self.state[:, ::-1]) + push + gust
            done.append(action)
            rewards.append(-np.abs(self.state[:, 0]) - 0.1 * np.square(self.state).mean(1))
        returns = np.cumsum(np.stack(rewards)[::-1], 0)[::-1].astype(np.float32)
        returns = (returns - returns.mean(1, keepdims=True)) / (returns.std() + 1e-6)
        return np.concatenate(seen), np.concatenate(done), returns.reshape(-1)
