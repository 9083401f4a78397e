"""Many carts with poles, moved all at once."""

import numpy as np


class Carts:
    def __init__(self, count, seed=0):
        self.count, self.rng = count, np.random.default_rng(seed)
        self.state = self.rng.uniform(-0.05, 0.05, (count, 4)).astype(np.float32)

    def step(self, action):
        x, v, angle, spin = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        sin, cos = np.sin(angle), np.cos(angle)
        push = (force + 0.05 * spin**2 * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        move = push - 0.05 * turn * cos / 1.1
        state = np.stack(
            [x + 0.02 * v, v + 0.02 * move, angle + 0.02 * spin, spin + 0.02 * turn], axis=1
        )
        done = (np.abs(state[:, 0]) > 2.4) | (np.abs(state[:, 2]) > 0.21)
        fresh = self.rng.uniform(-0.05, 0.05, state.shape)
        self.state = np.where(done[:, None], fresh, state).astype(np.float32)
        return self.state, np.ones(self.count, np.float32), done
