"""Which recipes does a cook like: matrix factorisation with NumPy."""

import argparse
import time

import numpy as np

COOKS, RECIPES, RANK = 2000, 3000, 16


def step_each(p, q, cooks, recipes, ratings, lr):
    total = 0.0
    dp, dq = np.zeros_like(p), np.zeros_like(q)
    for c, r, rating in zip(cooks, recipes, ratings):
        error = rating - p[c] @ q[r]
        dp[c] += error * q[r]
        dq[r] += error * p[c]
        total += error * error
    p += lr * dp
    q += lr * dq
    return total / len(ratings)


def step_all(p, q, cooks, recipes, ratings, lr):
    pc, qr = p[cooks], q[recipes]
    error = ratings - np.einsum("ij,ij->i", pc, qr)
    dp, dq = np.zeros_like(p), np.zeros_like(q)
    np.add.at(dp, cooks, error[:, None] * qr)
    np.add.at(dq, recipes, error[:, None] * pc)
    p += lr * dp
    q += lr * dq
    return float(error @ error) / len(ratings)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--update", choices=["each", "all"], default="each")
    args = parser.parse_args()
    step_fn = step_each if args.update == "each" else step_all
    rng = np.random.default_rng(0)
    p, q = rng.normal(0, 0.1, (COOKS, RANK)), rng.normal(0, 0.1, (RECIPES, RANK))
    n = 400_000
    cooks, recipes = rng.integers(0, COOKS, n), rng.integers(0, RECIPES, n)
    ratings = rng.integers(1, 6, n).astype(float)
    steps = 160
    start = time.perf_counter()
    for step in range(steps):
        rows = rng.integers(0, n, 4000)
        loss = step_fn(p, q, cooks[rows], recipes[rows], ratings[rows], 0.02)
        if step % 40 == 39:
            print(f"step {step + 1}: {loss:.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
