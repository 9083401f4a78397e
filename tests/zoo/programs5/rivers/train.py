"""Levels of rivers from rain, in NumPy: a two-layer network with Adam, written by hand."""

import time

import numpy as np


def adam(params, grads, state, t, lr=1e-3):
    for p, g, (m, v) in zip(params, grads, state):
        m += 0.1 * (g - m)
        v += 0.001 * (g * g - v)
        p -= lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


def gradients(params, x, y):
    w1, b1, w2, b2 = params
    h = np.maximum(x @ w1 + b1, 0)
    error = (h @ w2 + b2 - y) / len(x)
    back = (error @ w2.T) * (h > 0)
    return [x.T @ back, back.sum(0), h.T @ error, error.sum(0)], float((error**2).sum() * len(x))


def main():
    rng = np.random.default_rng(0)
    rain = rng.gamma(0.5, 2, (20000, 120)).astype(np.float32)
    decay = np.exp(-np.arange(120) / 20).astype(np.float32)
    level = np.stack([rain @ decay, np.sqrt(rain @ decay[::-1])], 1)
    level = (level - level.mean(0)) / level.std(0)
    params = [
        rng.normal(0, 0.1, (120, 384)).astype(np.float32), np.zeros(384, np.float32),
        rng.normal(0, 0.05, (384, 2)).astype(np.float32), np.zeros(2, np.float32),
    ]  # fmt: skip
    state = [(np.zeros_like(p), np.zeros_like(p)) for p in params]
    steps, start = 0, time.perf_counter()
    for epoch in range(10):
        order = rng.permutation(len(rain))
        for pick in np.array_split(order, 40):
            steps += 1
            grads, loss = gradients(params, rain[pick], level[pick])
            adam(params, grads, state, steps)
        print(f"epoch {epoch}: {loss:.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
