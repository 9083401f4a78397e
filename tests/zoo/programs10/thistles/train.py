"""Predicts the spread of thistles with a network written in NumPy."""

import argparse
import os
import time

for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402


class Layer:
    def __init__(self, inputs, outputs, rng, first=False, last=False):
        self.weight = (rng.standard_normal((inputs, outputs)) * np.sqrt(2 / inputs)).astype(
            np.float32
        )
        self.bias = np.zeros(outputs, dtype=np.float32)
        self.first, self.last = first, last

    def forward(self, x):
        self.x = x
        self.y = x @ self.weight
        self.y += self.bias
        if not self.last:
            np.maximum(self.y, 0, out=self.y)
        return self.y

    def backward(self, grad, rate):
        if not self.last:
            grad *= self.y > 0
        before = None if self.first else grad @ self.weight.T
        step = self.x.T @ grad
        step *= rate
        self.weight -= step
        self.bias -= rate * grad.sum(axis=0)
        return before


def fields(count, rng):
    x = rng.standard_normal((count, 512), dtype=np.float32)
    return x, np.tanh(x[:, :4].sum(axis=1, keepdims=True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=90)
    parser.add_argument("--batch-size", type=int, default=768)
    args = parser.parse_args()

    rng = np.random.default_rng(250)
    x, y = fields(8192, rng)
    layers = [Layer(512, 512, rng, first=True), Layer(512, 512, rng), Layer(512, 1, rng, last=True)]

    started = time.perf_counter()
    for step in range(1, args.steps + 1):
        rows = rng.integers(0, len(x), args.batch_size)
        output = x[rows]
        for layer in layers:
            output = layer.forward(output)
        error = output - y[rows]
        grad = error * np.float32(2 / args.batch_size)
        for layer in reversed(layers):
            grad = layer.backward(grad, np.float32(0.02))
        if step % 20 == 0:
            print(f"step {step}: error {np.square(error).mean():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
