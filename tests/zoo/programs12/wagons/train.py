"""Loads of wagons: a regression network in NumPy on a standardised table."""

import argparse
import os
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

BATCH = 2048


def standardise(table):
    return (table - table.mean(axis=0)) / (table.std(axis=0) + 1e-6)


class Table:
    def __init__(self, rows, ready):
        rng = np.random.default_rng(1)
        self.rng = np.random.default_rng(2)
        self.table = 3 + 2 * rng.standard_normal((rows, 128), dtype=np.float32)
        self.loads = self.table[:, :6].mean(axis=1, keepdims=True)
        self.ready = ready
        if ready:
            self.table = standardise(self.table)

    def batch(self):
        rows = self.rng.integers(0, len(self.table), BATCH)
        table = self.table if self.ready else standardise(self.table)
        return table[rows], self.loads[rows]


def forward(weights, x):
    states = [x]
    for weight in weights[:-1]:
        states.append(np.maximum(states[-1] @ weight, 0))
    return states, states[-1] @ weights[-1]


def backward(weights, states, grad):
    changes = [None] * len(weights)
    for i in reversed(range(len(weights))):
        changes[i] = states[i].T @ grad
        if i > 0:
            grad = (grad @ weights[i].T) * (states[i] > 0)
    return changes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--standardise", choices=["always", "once"], default="always")
    parser.add_argument("--steps", type=int, default=75)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    sizes = [128, 256, 256, 256, 1]
    weights = []
    for rows, columns in zip(sizes[:-1], sizes[1:], strict=True):
        weights.append(
            rng.standard_normal((rows, columns), dtype=np.float32) * np.float32((1 / rows) ** 0.5)
        )
    data = Table(40_000, args.standardise == "once")

    start = time.perf_counter()
    for _ in range(args.steps):
        x, y = data.batch()
        states, guess = forward(weights, x)
        error = guess - y
        changes = backward(weights, states, error * np.float32(2 / BATCH))
        for weight, change in zip(weights, changes, strict=True):
            weight -= np.float32(0.01) * change
    seconds = time.perf_counter() - start
    print(f"loss {float((error**2).mean()):.4f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
