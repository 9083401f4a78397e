"""A fleet of taxis on a grid, and the memory of what happened to it."""

import numpy as np


class Fleet:
    def __init__(self, n=32, side=16, seed=0):
        self.rng = np.random.default_rng(seed)
        self.side = side
        self.demand = self.rng.random((side, side)).astype(np.float32)
        self.place = self.rng.integers(side, size=(n, 2))

    def view(self):
        seen = np.zeros((len(self.place), 2, self.side, self.side), np.float32)
        seen[:, 0] = self.demand
        seen[np.arange(len(seen)), 1, self.place[:, 0], self.place[:, 1]] = 1
        return seen

    def move(self, action):
        step = np.array([[0, 1], [1, 0], [0, -1], [-1, 0], [0, 0]])[action]
        self.place = (self.place + step) % self.side
        reward = self.demand[self.place[:, 0], self.place[:, 1]].copy()
        self.demand = np.clip(self.demand + self.rng.normal(0, 0.02, self.demand.shape), 0, 1)
        self.demand = self.demand.astype(np.float32)
        return reward


class Memory:
    def __init__(self, size, shape):
        self.seen = np.zeros((size, *shape), np.float32)
        self.after = np.zeros((size, *shape), np.float32)
        self.action = np.zeros(size, np.int64)
        self.reward = np.zeros(size, np.float32)
        self.n = 0

    def add(self, seen, action, reward, after):
        where = np.arange(self.n, self.n + len(seen)) % len(self.seen)
        self.seen[where], self.after[where] = seen, after
        self.action[where], self.reward[where] = action, reward
        self.n += len(seen)

    def sample(self, n, rng):
        pick = rng.integers(min(self.n, len(self.seen)), size=n)
        return self.seen[pick], self.action[pick], self.reward[pick], self.after[pick]
