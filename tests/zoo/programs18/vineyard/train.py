"""Yield of vines from soil and weather, two layers of NumPy."""

import os
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np


def forward(x, p):
    hidden = np.maximum(x @ p["w1"] + p["b1"], 0)
    return hidden, hidden @ p["w2"] + p["b2"]


def gradients(x, y, p):
    hidden, out = forward(x, p)
    error = (out - y) / np.float32(len(x))
    back = error @ p["w2"].T
    back *= hidden > 0
    return {
        "w2": hidden.T @ error,
        "b2": error.sum(axis=0),
        "w1": x.T @ back,
        "b1": back.sum(axis=0),
    }


def main(steps=240, batch=512):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8192, 400), dtype=np.float32)
    y = np.tanh(x[:, :8] @ rng.standard_normal((8, 64), dtype=np.float32))
    p = {
        "w1": rng.standard_normal((400, 1280), dtype=np.float32) * np.float32(0.05),
        "b1": np.zeros(1280, np.float32),
        "w2": rng.standard_normal((1280, 64), dtype=np.float32) * np.float32(0.05),
        "b2": np.zeros(64, np.float32),
    }
    rate = np.float32(0.05)
    start = time.perf_counter()
    for step in range(steps):
        at = (step * batch) % len(x)
        for name, gradient in gradients(x[at : at + batch], y[at : at + batch], p).items():
            p[name] -= rate * gradient
        if step % 40 == 0:
            guess = forward(x[:256], p)[1]
            print(step, np.square(guess - y[:256]).mean())
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
