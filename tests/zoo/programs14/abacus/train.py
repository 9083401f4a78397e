"""An autoencoder for sums on beads, by hand in NumPy."""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import time

import numpy as np


class Dense:
    def __init__(self, n_in, n_out, rng, dtype):
        self.w = (rng.standard_normal((n_in, n_out)) / np.sqrt(n_in)).astype(dtype)
        self.b = np.zeros(n_out, dtype)

    def forward(self, x):
        self.x = x
        return x @ self.w + self.b

    def backward(self, grad):
        self.dw = self.x.T @ grad
        self.db = grad.sum(0)
        return grad @ self.w.T

    def update(self, lr):
        self.w -= lr * self.dw
        self.b -= lr * self.db


class Tanh:
    def forward(self, x):
        self.y = np.tanh(x)
        return self.y

    def backward(self, grad):
        return grad * (1 - self.y * self.y)

    def update(self, lr):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--steps", type=int, default=160)
    args = parser.parse_args()
    dtype = np.dtype(args.dtype)
    rng = np.random.default_rng(0)
    basis = rng.standard_normal((24, 384))
    data = np.tanh(rng.standard_normal((4096, 24)) @ basis).astype(dtype)
    sizes = [384, 512, 64, 512, 384]
    layers = []
    for n_in, n_out in zip(sizes[:-1], sizes[1:]):
        layers += [Dense(n_in, n_out, rng, dtype), Tanh()]
    layers.pop()

    start = time.perf_counter()
    for step in range(args.steps):
        batch = data[rng.integers(0, len(data), 512)]
        out = batch
        for layer in layers:
            out = layer.forward(out)
        error = out - batch
        loss = float((error * error).mean())
        grad = error * dtype.type(2.0 / len(batch))
        for layer in reversed(layers):
            grad = layer.backward(grad)
        for layer in layers:
            layer.update(dtype.type(0.01))
        if step % 50 == 0:
            print(f"step {step} loss {loss:.5f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
