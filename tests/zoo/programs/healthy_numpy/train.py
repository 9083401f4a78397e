"""A network with one hidden layer in NumPy."""

import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np  # noqa: E402


class Network:
    def __init__(self, rng, inputs, hidden, outputs):
        self.w1 = (rng.normal(size=(inputs, hidden)) / inputs**0.5).astype(np.float32)
        self.w2 = (rng.normal(size=(hidden, outputs)) / hidden**0.5).astype(np.float32)

    def gradients(self, x, y):
        h = np.tanh(x @ self.w1)
        error = h @ self.w2 - y
        g2 = h.T @ error / len(x)
        g1 = x.T @ ((error @ self.w2.T) * (1 - h * h)) / len(x)
        return (error**2).mean(), g1, g2

    def apply(self, g1, g2, rate):
        self.w1 -= rate * g1
        self.w2 -= rate * g2


def main():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12_800, 256)).astype(np.float32)
    y = np.sin(x[:, :4]).astype(np.float32)
    network = Network(rng, 256, 1024, 4)
    steps = 0
    start = time.perf_counter()
    for epoch in range(6):
        order = rng.permutation(len(x))
        for begin in range(0, len(x), 256):
            chosen = order[begin : begin + 256]
            loss, g1, g2 = network.gradients(x[chosen], y[chosen])
            network.apply(g1, g2, 0.02)
            steps += 1
        print(f"epoch {epoch}: loss {loss:.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
