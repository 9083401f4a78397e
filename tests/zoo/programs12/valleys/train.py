"""Names of valleys: counted letter pairs, then a network in NumPy."""

import argparse
import os
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

BATCH = 1536
LETTERS = 40
SLOTS = 256


def count_pairs(names):
    counts = np.zeros((len(names), SLOTS), np.float32)
    for row, name in enumerate(names):
        previous = 0
        for letter in name:
            counts[row, (previous * 31 + letter) % SLOTS] += 1
            previous = int(letter)
    return counts


def count_pairs_at_once(names):
    previous = np.zeros_like(names)
    previous[:, 1:] = names[:, :-1]
    slots = (previous * 31 + names) % SLOTS + np.arange(len(names))[:, None] * SLOTS
    counts = np.bincount(slots.ravel(), minlength=len(names) * SLOTS)
    return counts.reshape(len(names), SLOTS).astype(np.float32)


class Network:
    def __init__(self, rng, sizes):
        shapes = list(zip(sizes[:-1], sizes[1:], strict=True))
        self.weights = [
            rng.standard_normal(s, dtype=np.float32) / np.float32(s[0] ** 0.5) for s in shapes
        ]

    def train(self, x, y, rate):
        inputs = [x]
        for weight in self.weights[:-1]:
            inputs.append(np.maximum(inputs[-1] @ weight, 0))
        error = inputs[-1] @ self.weights[-1] - y
        loss = float((error**2).mean())
        grad = error * np.float32(2 / len(x))
        for i in range(len(self.weights) - 1, -1, -1):
            change = inputs[i].T @ grad
            if i:
                grad = (grad @ self.weights[i].T) * (inputs[i] > 0)
            self.weights[i] -= np.float32(rate) * change
        return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", choices=["each", "all"], default="each")
    parser.add_argument("--steps", type=int, default=90)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    names = rng.integers(1, 27, (BATCH * 8, LETTERS))
    regions = (names[:, :1] % 5).astype(np.float32)
    network = Network(rng, [SLOTS, 256, 256, 256, 1])
    count = count_pairs if args.count == "each" else count_pairs_at_once

    start = time.perf_counter()
    for step in range(args.steps):
        begin = step % 8 * BATCH
        features = count(names[begin : begin + BATCH])
        loss = network.train(features, regions[begin : begin + BATCH], 0.001)
    seconds = time.perf_counter() - start
    print(f"loss {loss:.4f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
