import random

import numpy as np
import torch


class Storage:
    def __init__(self, capacity, obs, seed):
        rng = np.random.default_rng(seed)
        self.capacity, self.at = capacity, 0
        self.obs = rng.standard_normal((capacity, obs), dtype=np.float32)
        self.following = rng.standard_normal((capacity, obs), dtype=np.float32)
        self.action = rng.integers(0, 8, capacity)
        self.reward = rng.standard_normal(capacity, dtype=np.float32)

    def put(self, obs, action, reward, following):
        where = np.arange(self.at, self.at + len(action)) % self.capacity
        self.obs[where], self.following[where] = obs, following
        self.action[where], self.reward[where] = action, reward
        self.at = int(where[-1] + 1) % self.capacity
        return where

    def take(self, where):
        columns = (self.obs, self.action, self.reward, self.following)
        return [torch.from_numpy(c[where]) for c in columns]


class RankedReplay:
    def __init__(self, cfg):
        self.alpha = cfg.alpha
        self.storage = Storage(cfg.capacity, cfg.obs, cfg.seed)
        self.rng = random.Random(cfg.seed)
        self.priorities = [1.0 + self.rng.random() for _ in range(cfg.capacity)]

    def add(self, *transition):
        for i in self.storage.put(*transition):
            self.priorities[i] = 2.0

    def sample(self, n):
        scaled = [p**self.alpha for p in self.priorities]
        total = sum(scaled)
        weights = [s / total for s in scaled]
        where = np.array(self.rng.choices(range(len(weights)), weights=weights, k=n))
        return where, self.storage.take(where)

    def update(self, where, errors):
        for i, e in zip(where.tolist(), errors.tolist()):
            self.priorities[i] = e + 1e-3


class ArrayReplay:
    def __init__(self, cfg):
        self.alpha = cfg.alpha
        self.storage = Storage(cfg.capacity, cfg.obs, cfg.seed)
        self.rng = np.random.default_rng(cfg.seed)
        self.scaled = (1.0 + self.rng.random(cfg.capacity)) ** cfg.alpha

    def add(self, *transition):
        self.scaled[self.storage.put(*transition)] = 2.0**self.alpha

    def sample(self, n):
        heap = np.cumsum(self.scaled)
        where = np.searchsorted(heap, self.rng.random(n) * heap[-1])
        return where, self.storage.take(where)

    def update(self, where, errors):
        self.scaled[where] = (errors + 1e-3) ** self.alpha


BUFFERS = {"ranked": RankedReplay, "array": ArrayReplay}
