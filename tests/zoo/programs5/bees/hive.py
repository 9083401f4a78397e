import queue
import threading

import numpy as np


class Hive:
    """Positions of bees over time, as tracked by a camera; a thread prepares the next batches."""

    def __init__(self, n_bees=200, seed=0):
        rng = np.random.default_rng(seed)
        turn = np.cumsum(rng.normal(0, 0.3, (2000, n_bees)), 0)
        step = np.stack([np.cos(turn), np.sin(turn)], -1)
        self.path = (0.01 * np.cumsum(step, 0)).astype(np.float32)

    def batch(self, rng, size, length):
        start = rng.integers(len(self.path) - length, size=size)
        bee = rng.integers(self.path.shape[1], size=size)
        track = self.path[start[:, None] + np.arange(length), bee[:, None]]
        return track - track[:, :1]


def prefetch(make, n, ahead=4):
    ready = queue.Queue(ahead)

    def work():
        for _ in range(n):
            ready.put(make())
        ready.put(None)

    threading.Thread(target=work, daemon=True).start()
    while (batch := ready.get()) is not None:
        yield batch
