"""Burning times of candles: an autoencoder in NumPy."""

import os
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

STEPS = 80
BATCH = 2048


def main():
    rng = np.random.default_rng(0)
    candles = rng.standard_normal((BATCH * 6, 320), dtype=np.float32)
    enter = rng.standard_normal((320, 384), dtype=np.float32) / np.float32(320**0.5)
    leave = rng.standard_normal((384, 320), dtype=np.float32) / np.float32(384**0.5)
    rate = np.float32(0.05)

    start = time.perf_counter()
    for step in range(STEPS):
        begin = step % 6 * BATCH
        x = candles[begin : begin + BATCH]
        hidden = x @ enter
        np.maximum(hidden, 0, out=hidden)
        error = hidden @ leave
        error -= x
        error *= np.float32(2 / BATCH)
        back = error @ leave.T
        back *= hidden > 0
        leave -= rate * (hidden.T @ error)
        enter -= rate * (x.T @ back)
    seconds = time.perf_counter() - start
    print(f"error {float(np.abs(error).mean()) * BATCH / 2:.4f}")
    print(f"trained {STEPS} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
