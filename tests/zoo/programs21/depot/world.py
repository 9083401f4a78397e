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
        ranges = np.empty(self.beams, np.float32)
        count = int(self.reach / self.stride)
        for beam in range(self.beams):
            angle = 2 * math.pi * beam / self.beams
            distance = self.reach
            for k in range(1, count + 1):
                x = self.x + 0.5 + k * self.stride * math.cos(angle)
                y = self.y + 0.5 + k * self.stride * math.sin(angle)
                if not (0 <= x < self.size and 0 <= y < self.size):
                    distance = k * self.stride
                    break
                if self.blocked[int(y), int(x)]:
                    distance = k * self.stride
                    break
            ranges[beam] = distance / self.reach
        return ranges

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
