"""Minimize a costly function with a surrogate that is fitted to all points measured."""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from surrogate import init, propose, refit

DIMENSIONS = 6
FIRST = 2000
ROUNDS = 16
FITS = 8


def costly(x):
    return np.sum((x - 0.3) ** 2, -1) + 0.3 * np.sum(np.cos(6 * x), -1)


def padded(x, y, size):
    rest = size - len(x)
    mask = np.concatenate([np.ones(len(x), np.float32), np.zeros(rest, np.float32)])
    return np.pad(x, ((0, rest), (0, 0))), np.pad(y, (0, rest)), mask


def main():
    pad = "--pad" in sys.argv[1:]
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (FIRST, DIMENSIONS)).astype(np.float32)
    y = costly(x).astype(np.float32)
    params = init(jax.random.PRNGKey(0), [DIMENSIONS, 256, 256, 256, 1])
    velocity = jax.tree.map(jnp.zeros_like, params)

    steps = 0
    begin = time.perf_counter()
    for number in range(ROUNDS):
        if pad:
            batch = padded(x, y, FIRST + ROUNDS)
        else:
            batch = x, y, np.ones(len(x), np.float32)
        for _ in range(FITS):
            params, velocity, loss = refit(params, velocity, *batch, 0.01)
            steps += 1
        candidates = rng.uniform(-1, 1, (256, DIMENSIONS)).astype(np.float32)
        point = np.asarray(propose(params, candidates))
        x = np.concatenate([x, point[None]])
        y = np.append(y, costly(point)).astype(np.float32)
        if number % 4 == 3:
            print(f"round {number + 1} loss {float(loss):.4f} best {y.min():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
