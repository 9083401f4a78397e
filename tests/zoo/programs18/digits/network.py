import math

import numpy as np


def softmax(z):
    z = np.exp(z - z.max(axis=1, keepdims=True))
    z /= z.sum(axis=1, keepdims=True)
    return z


def cross_entropy(p, y):
    """Loss, and its gradient at the output."""
    n, classes = p.shape
    loss = 0.0
    delta = np.zeros_like(p)
    for i in range(n):
        for k in range(classes):
            if y[i, k] == 1:
                loss -= math.log(p[i, k] + 1e-9)
            delta[i, k] = (p[i, k] - y[i, k]) / n
    return loss / n, delta


def cross_entropy_arrays(p, y):
    loss = -np.log(p[y == 1] + 1e-9).mean()
    return loss, (p - y) / np.float32(len(p))


class Network:
    def __init__(self, sizes, loss, seed=0):
        rng = np.random.default_rng(seed)
        self.loss = loss
        self.weights = [
            (rng.standard_normal((m, n)) / np.sqrt(m)).astype(np.float32)
            for m, n in zip(sizes[:-1], sizes[1:])
        ]
        self.biases = [np.zeros(n, np.float32) for n in sizes[1:]]

    def step(self, x, y, rate):
        hidden = np.maximum(x @ self.weights[0] + self.biases[0], 0)
        out = softmax(hidden @ self.weights[1] + self.biases[1])
        loss, delta = self.loss(out, y)
        back = delta @ self.weights[1].T
        back *= hidden > 0
        self.weights[1] -= rate * (hidden.T @ delta)
        self.biases[1] -= rate * delta.sum(axis=0)
        self.weights[0] -= rate * (x.T @ back)
        self.biases[0] -= rate * back.sum(axis=0)
        return loss
