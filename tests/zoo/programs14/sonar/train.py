"""Depth from echoes: a deep residual network in JAX, with simulated echoes made as needed."""

import argparse
import os
import time

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import jax
import jax.numpy as jnp
import numpy as np
import optax

REFLECTIONS, FINER = 6, 4
WIDTH, LAYERS, BATCH = 320, 4, 256


def init(key):
    keys = jax.random.split(key, LAYERS + 1)
    blocks = [jax.random.normal(k, (2, WIDTH, WIDTH)) * 0.04 for k in keys[:-1]]
    return {"blocks": blocks, "out": jax.random.normal(keys[-1], (WIDTH,)) * 0.05}


def model(params, x):
    for w in params["blocks"]:
        x = x + jnp.tanh(x @ w[0]) @ w[1]
    return x @ params["out"]


def loss_fn(params, x, y):
    return jnp.mean(jnp.square(model(params, x) - y))


optimizer = optax.sgd(1e-3, momentum=0.9)


@jax.jit
def update(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = optimizer.update(grads, opt_state)
    params = optax.apply_updates(params, updates)
    return params, opt_state, loss, optax.global_norm(grads)


class Echoes:
    """A new batch each time: a pulse and what it leaves at some depth."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.axis = np.arange(WIDTH * FINER, dtype=np.float32) / FINER

    def next_batch(self):
        depth = self.rng.uniform(0.1, 0.9, BATCH).astype(np.float32)
        echo = self.rng.normal(0, 0.1, (BATCH, WIDTH * FINER))
        for bounce in range(1, REFLECTIONS + 1):
            offset = self.axis - depth[:, None] * (WIDTH * bounce)
            echo += np.exp(-0.01 * offset * offset) * np.cos(0.5 * offset) / bounce
        echo = echo.reshape(BATCH, WIDTH, FINER).mean(2)
        return echo.astype(np.float32), depth


class Curve:
    def __init__(self, every):
        self.every = every
        self.points = []

    def add(self, step, loss, norm):
        if step % self.every == 0:
            self.points.append((step, float(loss), float(norm)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--steps", type=int, default=160)
    args = parser.parse_args()
    echoes = Echoes(3)
    params = init(jax.random.key(3))
    opt_state = optimizer.init(params)
    curve = Curve(args.every)
    jax.block_until_ready(update(params, opt_state, *echoes.next_batch()))

    start = time.perf_counter()
    for step in range(args.steps):
        x, y = echoes.next_batch()
        params, opt_state, loss, norm = update(params, opt_state, x, y)
        curve.add(step, loss, norm)
    jax.block_until_ready(params)
    elapsed = time.perf_counter() - start
    print("first and last loss", curve.points[0][1], curve.points[-1][1])
    print(f"trained {args.steps} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
