"""Records and their listeners: dense matrix factorisation by gradient descent, NumPy."""

import time

import numpy as np

LISTENERS, RECORDS, RANK = 900, 1200, 40


def gradients(u, v, plays):
    error = u @ v.T - plays
    return error @ v, error.T @ u, float(np.mean(error * error))


def main():
    rng = np.random.default_rng(0)
    true_u = rng.standard_normal((LISTENERS, 8), dtype=np.float32)
    true_v = rng.standard_normal((RECORDS, 8), dtype=np.float32)
    plays = true_u @ true_v.T
    u = 0.1 * rng.standard_normal((LISTENERS, RANK), dtype=np.float32)
    v = 0.1 * rng.standard_normal((RECORDS, RANK), dtype=np.float32)
    steps, lr = 200, np.float32(2e-4)
    start = time.perf_counter()
    for step in range(steps):
        du, dv, loss = gradients(u, v, plays)
        u -= lr * du
        v -= lr * dv
        if step % 50 == 49:
            print(f"step {step + 1}: {loss:.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
