"""Question 29, NumPy: six kinds of soil, a network written by hand."""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import time

import numpy as np


class Dense:
    def __init__(self, rng, inputs, outputs):
        self.weight = rng.normal(0, inputs**-0.5, (inputs, outputs)).astype(np.float32)
        self.bias = np.zeros(outputs, dtype=np.float32)

    def forward(self, x):
        self.x = x
        return x @ self.weight + self.bias

    def backward(self, slope, rate, further=True):
        below = slope @ self.weight.T if further else None
        self.weight -= rate * (self.x.T @ slope)
        self.bias -= rate * slope.sum(axis=0)
        return below


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=220)
    args = parser.parse_args()
    rng = np.random.default_rng(29)
    samples = rng.normal(size=(4096, 200)).astype(np.float32)
    kinds = samples[:, :6].argmax(axis=1)
    first, second, last = Dense(rng, 200, 512), Dense(rng, 512, 512), Dense(rng, 512, 6)
    start = time.perf_counter()
    for step in range(args.steps):
        rows = slice(step % 8 * 512, step % 8 * 512 + 512)
        one = np.maximum(first.forward(samples[rows]), 0)
        two = np.maximum(second.forward(one), 0)
        scores = last.forward(two)
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        chances[np.arange(512), kinds[rows]] -= 1
        slope = last.backward(chances / 512, 0.1)
        slope = second.backward(slope * (two > 0), 0.1)
        first.backward(slope * (one > 0), 0.1, further=False)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
