"""A stand-in for the object store of the project."""

import time

import numpy as np


class Store:
    ROUND_TRIP = 0.0015

    def __init__(self, count, shape, seed=0):
        rng = np.random.default_rng(seed)
        self.objects = rng.standard_normal((count, *shape)).astype(np.float32)

    def get(self, key):
        time.sleep(self.ROUND_TRIP)
        return self.objects[key]

    def get_range(self, keys):
        time.sleep(self.ROUND_TRIP)
        return self.objects[keys]
