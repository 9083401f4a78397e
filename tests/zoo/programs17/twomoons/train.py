"""Two-layer network with backpropagation by hand. CS course, assignment 1."""

import argparse
import os
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np


class TwoLayerNet:
    def __init__(self, d, h, k, rng):
        self.W1 = (rng.standard_normal((d, h)) / np.sqrt(d)).astype(np.float32)
        self.b1 = np.zeros(h, np.float32)
        self.W2 = (rng.standard_normal((h, k)) / np.sqrt(h)).astype(np.float32)
        self.b2 = np.zeros(k, np.float32)

    def loss(self, X, y):
        h = np.maximum(0, X @ self.W1 + self.b1)
        scores = h @ self.W2 + self.b2
        scores -= scores.max(axis=1, keepdims=True)
        p = np.exp(scores)
        p /= p.sum(axis=1, keepdims=True)
        loss = -np.log(p[np.arange(len(y)), y] + 1e-9).mean()
        p[np.arange(len(y)), y] -= 1
        p /= len(y)
        grads = {"W2": h.T @ p, "b2": p.sum(0)}
        dh = (p @ self.W2.T) * (h > 0)
        grads["W1"], grads["b1"] = X.T @ dh, dh.sum(0)
        return loss, grads

    def step(self, grads, lr):
        for name, g in grads.items():
            getattr(self, name).__isub__(np.float32(lr) * g)


def train_step(net, X, y, lr):
    loss, grads = net.loss(X, y)
    net.step(grads, lr)
    return loss


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=160)
    a = ap.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8000, 1024), dtype=np.float32)
    y = rng.integers(0, 10, 8000)
    net = TwoLayerNet(1024, 768, 10, rng)
    start = time.perf_counter()
    for it in range(a.steps):
        idx = rng.integers(0, len(X), 256)
        loss = train_step(net, X[idx], y[idx], 0.05)
        if it % 50 == 0:
            print(f"iteration {it} / {a.steps}: loss {loss:.4f}")
    print(f"trained {a.steps} steps in {time.perf_counter() - start:.3f} s")
