"""A depot with shelves: the cart sees by range sensor and has to reach the loading bay."""

import math

import numpy as np

MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))


class Depot:
    def __init__(self, size=16, beams=12, reach=5.0, limit=80, seed=0):
        self.size = size
        self.beams = beams
        self.reach = reach
        self.limit = limit
        self.stride = 0.25
        angle = 2 * math.pi * np.arange(beams)[:, None] / beams
        along = self.stride * np.arange(1, int(reach / self.stride) + 1)
        self.offset_x = along * np.cos(angle)
        self.offset_y = along * np.sin(angle)
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self):
        blocked = np.zeros((self.size, self.size), bool)
        blocked[[0, -1], :] = blocked[:, [0, -1]] = True
        for y in range(3, self.size - 3, 3):
            gap = self.rng.integers(2, self.size - 4)
            blocked[y, 2 : self.size - 2] = True
            blocked[y, gap : gap + 3] = False
        self.blocked = blocked
        free = np.argwhere(~blocked)
        self.y, self.x = free[self.rng.integers(len(free))]
        self.bay_y, self.bay_x = free[self.rng.integers(len(free))]
        self.time = 0
        return self.observe()

    def scan(self):
        x = (self.x + 0.5 + self.offset_x).astype(np.int64)
        y = (self.y + 0.5 + self.offset_y).astype(np.int64)
        outside = (x < 0) | (y < 0) | (x >= self.size) | (y >= self.size)
        hit = outside | self.blocked[y.clip(0, self.size - 1), x.clip(0, self.size - 1)]
        first = np.where(hit.any(1), hit.argmax(1) + 1, hit.shape[1])
        return (first * (self.stride / self.reach)).astype(np.float32)

    def observe(self):
        towards = [(self.bay_x - self.x) / self.size, (self.bay_y - self.y) / self.size]
        return np.concatenate([self.scan(), np.array(towards, np.float32)])

    def distance(self):
        return abs(self.bay_x - self.x) + abs(self.bay_y - self.y)

    def step(self, action):
        before = self.distance()
        dx, dy = MOVES[action]
        reward = -0.02
        if self.blocked[self.y + dy, self.x + dx]:
            reward -= 0.1
        else:
            self.x += dx
            self.y += dy
        reward += 0.1 * (before - self.distance())
        self.time += 1
        arrived = self.distance() == 0
        if arrived:
            reward += 1.0
        done = arrived or self.time >= self.limit
        return (self.reset() if done else self.observe()), reward, done
