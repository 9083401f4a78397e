"""A convolutional network for quilt patterns, in NumPy alone."""

import argparse
import os
import time

for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402

SIDE, KERNEL, FILTERS, HIDDEN, PATTERNS = 28, 3, 32, 128, 6
OUT = SIDE - KERNEL + 1
POOLED = OUT // 2


def patches_by_place(images):
    columns = np.empty((len(images), OUT * OUT, KERNEL * KERNEL), dtype=np.float32)
    for n in range(len(images)):
        for i in range(OUT):
            for j in range(OUT):
                columns[n, i * OUT + j] = images[n, i : i + KERNEL, j : j + KERNEL].ravel()
    return columns.reshape(-1, KERNEL * KERNEL)


def patches_by_view(images):
    windows = np.lib.stride_tricks.sliding_window_view(images, (KERNEL, KERNEL), axis=(1, 2))
    return windows.reshape(-1, KERNEL * KERNEL)


class Network:
    def __init__(self, patches, rng):
        self.patches = patches
        self.kernel = (rng.standard_normal((KERNEL * KERNEL, FILTERS)) / 3).astype(np.float32)
        size = POOLED * POOLED * FILTERS
        self.w1 = (rng.standard_normal((size, HIDDEN)) / np.sqrt(size)).astype(np.float32)
        self.w2 = (rng.standard_normal((HIDDEN, PATTERNS)) / np.sqrt(HIDDEN)).astype(np.float32)

    def forward(self, images):
        self.columns = self.patches(images)
        self.maps = np.maximum(self.columns @ self.kernel, 0)
        grid = self.maps.reshape(-1, POOLED, 2, POOLED, 2, FILTERS)
        pooled = (
            grid[:, :, 0, :, 0] + grid[:, :, 0, :, 1] + grid[:, :, 1, :, 0] + grid[:, :, 1, :, 1]
        ) / 4
        self.flat = pooled.reshape(len(images), -1)
        self.hidden = np.maximum(self.flat @ self.w1, 0)
        return self.hidden @ self.w2

    def backward(self, d_scores, rate):
        d_hidden = (d_scores @ self.w2.T) * (self.hidden > 0)
        d_flat = d_hidden @ self.w1.T
        d_pooled = d_flat.reshape(-1, POOLED, 1, POOLED, 1, FILTERS) / 4
        d_maps = np.broadcast_to(d_pooled, (len(d_flat), POOLED, 2, POOLED, 2, FILTERS)).reshape(
            -1, FILTERS
        )
        d_kernel = self.columns.T @ (d_maps * (self.maps > 0))
        self.w2 -= rate * (self.hidden.T @ d_scores)
        self.w1 -= rate * (self.flat.T @ d_hidden)
        self.kernel -= rate * d_kernel


def softmax_loss(scores, labels):
    scores = scores - scores.max(axis=1, keepdims=True)
    probability = np.exp(scores)
    probability /= probability.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(probability[rows, labels] + 1e-9).mean()
    probability[rows, labels] -= 1
    return loss, probability / len(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--patches", choices=["place", "view"], default="place")
    args = parser.parse_args()

    rng = np.random.default_rng(160)
    labels = rng.integers(0, PATTERNS, 2048)
    images = rng.random((2048, SIDE, SIDE), dtype=np.float32) + 0.1 * labels[:, None, None].astype(
        np.float32
    )
    network = Network(patches_by_place if args.patches == "place" else patches_by_view, rng)

    started = time.perf_counter()
    for step in range(1, args.steps + 1):
        rows = rng.integers(0, len(images), args.batch_size)
        scores = network.forward(images[rows])
        loss, d_scores = softmax_loss(scores, labels[rows])
        network.backward(d_scores, rate=0.05)
        if step % 16 == 0:
            print(f"step {step}: loss {loss:.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
