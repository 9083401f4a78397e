"""Sag of power lines from weather and load."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time

import numpy as np
from network import Network


def train_step(net, x, y, lr):
    out = net.forward(x)
    error = out - y
    net.backward(2 * error / error.size)
    net.update(lr)
    return float((error * error).mean())


def main(steps=480, batch=256):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((8192, 256)).astype(np.float32)
    y = np.tanh(x[:, :1] + 0.5 * x[:, 1:2])
    net = Network([256, 512, 512, 1])
    start = time.perf_counter()
    for step in range(steps):
        rows = rng.integers(0, len(x), batch)
        loss = train_step(net, x[rows], y[rows], lr=0.01)
        if (step + 1) % 120 == 0:
            print(f"step {step + 1}: {loss:.5f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
