"""A stand-in for a bucket in another region: each request takes a round trip."""

import time

import numpy as np

ROUND_TRIP = 0.006


class Bucket:
    def __init__(self, count, size=48):
        rng = np.random.default_rng(5)
        self.objects = [
            rng.integers(0, 255, size * size * 3, dtype=np.uint8).tobytes() for _ in range(count)
        ]

    def get(self, key):
        time.sleep(ROUND_TRIP)
        return self.objects[key]

    def get_many(self, keys):
        time.sleep(ROUND_TRIP)
        return [self.objects[key] for key in keys]
