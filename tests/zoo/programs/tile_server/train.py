"""Softmax regression with one hidden layer in NumPy, on rows that come over the network."""

import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import client
import numpy as np
import server

rng = np.random.default_rng(0)
WIDTH, HIDDEN, CLASSES, BATCH = 1024, 768, 10, 8


def forward(x, w1, w2):
    hidden = np.maximum(x @ w1, 0)
    logits = hidden @ w2
    logits -= logits.max(1, keepdims=True)
    p = np.exp(logits)
    return hidden, p / p.sum(1, keepdims=True)


def train_step(x, y, w1, w2, lr):
    hidden, p = forward(x, w1, w2)
    loss = -np.log(p[np.arange(len(y)), y] + 1e-9).mean()
    p[np.arange(len(y)), y] -= 1
    p /= len(y)
    g2 = hidden.T @ p
    g1 = x.T @ ((p @ w2.T) * (hidden > 0))
    w1 -= lr * g1
    w2 -= lr * g2
    return loss


labels = rng.integers(0, CLASSES, 480)
rows = (rng.normal(size=(CLASSES, WIDTH))[labels] + rng.normal(size=(480, WIDTH))).astype("f4")
port = server.start(rows)
source = (client.PooledClient if "--pool" in sys.argv else client.Client)(port, WIDTH)

w1 = (rng.normal(size=(WIDTH, HIDDEN)) / WIDTH**0.5).astype("f4")
w2 = (rng.normal(size=(HIDDEN, CLASSES)) / HIDDEN**0.5).astype("f4")
steps = 0
start = time.perf_counter()
for epoch in range(2):
    losses = []
    for chosen, x in source.batches(rng.permutation(480), BATCH):
        losses.append(train_step(x, labels[chosen], w1, w2, 0.01))
        steps += 1
    print(f"epoch {epoch}: loss {np.mean(losses):.3f}")
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
