"""A bottleneck autoencoder for vowel spectra. Only numpy, to see how it all works."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time

import numpy as np

SIZES = [400, 512, 384, 32, 384, 512, 400]
FORMANTS = {"a": (730, 1090), "e": (530, 1840), "i": (270, 2290), "o": (570, 840), "u": (300, 870)}


def vowel_spectra(n, rng):
    freq = np.linspace(50, 4050, SIZES[0])
    pitch = rng.uniform(90, 250, (n, 1))
    peaks = np.array(list(FORMANTS.values()))[rng.integers(0, 5, n)]
    peaks = peaks * rng.normal(1, 0.05, peaks.shape)
    envelope = sum(np.exp(-(((freq - peaks[:, [k]]) / 180) ** 2)) for k in (0, 1))
    harmonics = 0.6 + 0.4 * np.cos(2 * np.pi * freq / pitch)
    return (envelope * harmonics - 0.2).astype(np.float32)


class Dense:
    def __init__(self, n_in, n_out, rng, last=False):
        self.w = (rng.standard_normal((n_in, n_out)) / np.sqrt(n_in)).astype(np.float32)
        self.b = np.zeros(n_out, np.float32)
        self.vw, self.vb = np.zeros_like(self.w), np.zeros_like(self.b)
        self.last = last

    def forward(self, x):
        self.x = x
        z = x @ self.w + self.b
        self.y = z if self.last else np.maximum(z, np.float32(0))
        return self.y

    def backward(self, dy):
        dz = dy if self.last else dy * (self.y > 0)
        self.dw = self.x.T @ dz
        self.db = dz.sum(0)
        return dz @ self.w.T

    def update(self, lr, momentum):
        for p, g, v in ((self.w, self.dw, self.vw), (self.b, self.db, self.vb)):
            v *= momentum
            v -= lr * g
            p += v


def train(steps=130, batch=512, lr=0.05, momentum=0.9):
    rng = np.random.default_rng(4)
    data = vowel_spectra(6000, rng)
    pairs = list(zip(SIZES[:-1], SIZES[1:]))
    layers = [Dense(a, b, rng, last=i == len(pairs) - 1) for i, (a, b) in enumerate(pairs)]

    start = time.perf_counter()
    for step in range(1, steps + 1):
        x = data[rng.integers(0, len(data), batch)]
        h = x
        for layer in layers:
            h = layer.forward(h)
        error = h - x
        grad = error * np.float32(2 / batch)
        for layer in reversed(layers):
            grad = layer.backward(grad)
        for layer in layers:
            layer.update(np.float32(lr / 10), np.float32(momentum))
        if step % 15 == 0:
            print(f"step {step:3d}  mse {np.mean(error**2):.5f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    train()
