"""A small classifier in NumPy, on rows that come over the network."""

import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import client
import numpy as np
import server

rng = np.random.default_rng(0)
WIDTH, HIDDEN, CLASSES, BATCH = 1024, 1536, 10, 8


def softmax(z):
    p = np.exp(z - z.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def train_step(x, y, weights, lr):
    w1, w2, w3 = weights
    h1 = np.maximum(x @ w1, 0)
    h2 = np.maximum(h1 @ w2, 0)
    p = softmax(h2 @ w3)
    loss = -np.log(p[np.arange(len(y)), y] + 1e-9).mean()
    p[np.arange(len(y)), y] -= 1
    p /= len(y)
    back2 = (p @ w3.T) * (h2 > 0)
    back1 = (back2 @ w2.T) * (h1 > 0)
    w3 -= lr * (h2.T @ p)
    w2 -= lr * (h1.T @ back2)
    w1 -= lr * (x.T @ back1)
    return loss


labels = rng.integers(0, CLASSES, 480)
rows = (rng.normal(size=(CLASSES, WIDTH))[labels] + rng.normal(size=(480, WIDTH))).astype("f4")
port = server.start(rows)
source = (client.PooledClient if "--pool" in sys.argv else client.Client)(port, WIDTH)

sizes = [WIDTH, HIDDEN, HIDDEN, CLASSES]
weights = [(rng.normal(size=(n, m)) / n**0.5).astype("f4") for n, m in zip(sizes, sizes[1:])]
steps = 0
start = time.perf_counter()
for epoch in range(4):
    losses = []
    for chosen, x in source.batches(rng.permutation(480), BATCH):
        losses.append(train_step(x, labels[chosen], weights, 0.01))
        steps += 1
    print(f"epoch {epoch}: loss {np.mean(losses):.3f}")
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
