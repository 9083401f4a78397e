"""Logged decisions of a reorder policy: shelves side by side, days one after another."""

from typing import NamedTuple

import numpy as np

FEATURES = 20
ORDERS = 6


class Chunk(NamedTuple):
    features: np.ndarray  # days + 1, shelves, FEATURES
    orders: np.ndarray  # days, shelves
    profit: np.ndarray  # days, shelves
    ended: np.ndarray  # days, shelves


def make_chunks(count, days, shelves, seed):
    rng = np.random.default_rng(seed)
    chunks = []
    for _ in range(count):
        features = rng.standard_normal((days + 1, shelves, FEATURES), dtype=np.float32)
        orders = rng.integers(0, ORDERS, size=(days, shelves))
        demand = np.clip(features[:-1, :, 0] + 2.5, 0, ORDERS - 1)
        profit = (1.0 - 0.3 * np.abs(orders - demand)).astype(np.float32)
        ended = rng.random((days, shelves)) < 0.02
        chunks.append(Chunk(features, orders, profit, ended))
    return chunks
