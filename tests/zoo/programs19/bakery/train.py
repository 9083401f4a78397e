"""Tomorrow's sales of a bakery: a network of two layers in NumPy."""

import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

STEPS, BATCH, INPUTS, HIDDEN = 320, 512, 192, 512


def sales(rng):
    x = rng.standard_normal((16 * BATCH, INPUTS), dtype=np.float32)
    y = np.tanh(x[:, :4]).sum(axis=1, keepdims=True)
    return x, y + 0.1 * rng.standard_normal(y.shape, dtype=np.float32)


class Network:
    def __init__(self, rng):
        self.weights = [
            rng.standard_normal((a, b), dtype=np.float32) / np.float32(np.sqrt(a))
            for a, b in [(INPUTS, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1)]
        ]
        self.speed = [np.zeros_like(w) for w in self.weights]

    def step(self, x, y, rate=0.01):
        w1, w2, w3 = self.weights
        a = np.maximum(x @ w1, 0)
        b = np.maximum(a @ w2, 0)
        error = (b @ w3 - y) / len(x)
        back_b = (error @ w3.T) * (b > 0)
        back_a = (back_b @ w2.T) * (a > 0)
        for w, v, g in zip(self.weights, self.speed, (x.T @ back_a, a.T @ back_b, b.T @ error)):
            v *= 0.9
            v -= rate * g
            w += v
        return float((error * error).sum() * len(x))


def main():
    rng = np.random.default_rng(150)
    x, y = sales(rng)
    network = Network(rng)
    begin = time.perf_counter()
    for step in range(STEPS):
        at = step % 16 * BATCH
        loss = network.step(x[at : at + BATCH], y[at : at + BATCH])
    seconds = time.perf_counter() - begin
    print(f"loss {loss:.4f}")
    print(f"trained {STEPS} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
