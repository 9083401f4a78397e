"""Phase classification of Ising configurations, two layers, only numpy (sheet 7)."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import time

import numpy as np

rng = np.random.default_rng(22)
X = np.sign(rng.standard_normal((6000, 900))).astype(np.float32)
y = (np.abs(X.mean(1)) > 0.02).astype(np.float32)[:, None]
W1 = (rng.standard_normal((900, 700)) / 30).astype(np.float32)
b1 = np.zeros(700, np.float32)
W2 = (rng.standard_normal((700, 1)) / 26).astype(np.float32)
b2 = np.zeros(1, np.float32)
lr = np.float32(0.05)


def forward(x):
    h = np.maximum(x @ W1 + b1, 0)
    return h, 1 / (1 + np.exp(-(h @ W2 + b2)))


start = time.perf_counter()
steps = 0
for epoch in range(22):
    order = rng.permutation(len(X))
    for i in range(0, len(X), 400):
        idx = order[i : i + 400]
        x, t = X[idx], y[idx]
        h, p = forward(x)
        d = (p - t) / len(idx)
        dh = (d @ W2.T) * (h > 0)
        W2 -= lr * (h.T @ d)
        b2 -= lr * d.sum(0)
        W1 -= lr * (x.T @ dh)
        b1 -= lr * dh.sum(0)
        steps += 1
    print(epoch, float(-(t * np.log(p + 1e-7) + (1 - t) * np.log(1 - p + 1e-7)).mean()))
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
