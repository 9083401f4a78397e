"""Learning a satellite's drag from tracks, with a hand-made cosine schedule."""

import argparse
import math
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


def init(key, sizes):
    keys = jax.random.split(key, len(sizes))
    return [
        {"w": jax.random.normal(k, (m, n)) * (2 / m) ** 0.5, "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def predict(params, x):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


def update(params, velocity, x, y, lr):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    velocity = jax.tree.map(lambda v, g: 0.9 * v - lr * g, velocity, grads)
    params = jax.tree.map(jnp.add, params, velocity)
    return params, velocity, loss


def tracks(batches, size, seed=5):
    rng = np.random.default_rng(seed)
    pool = rng.standard_normal((4096, 48)).astype(np.float32)
    for _ in range(batches):
        rows = pool[rng.integers(0, len(pool), size)]
        yield rows, np.sin(rows[:, :6])


def cosine(step, total, peak):
    return round(0.5 * peak * (1 + math.cos(math.pi * step / total)), 3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--traced-lr", action="store_true")
    args = parser.parse_args()
    if args.traced_lr:
        train_step = jax.jit(update)
    else:
        train_step = partial(jax.jit, static_argnames="lr")(update)

    params = init(jax.random.key(0), [48, 384, 384, 6])
    velocity = jax.tree.map(jnp.zeros_like, params)
    start = time.perf_counter()
    for step, (x, y) in enumerate(tracks(args.steps, args.batch)):
        lr = cosine(step, args.steps, 0.012)
        params, velocity, loss = train_step(params, velocity, x, y, lr=lr)
        if step % 60 == 0:
            print(f"step {step:4d} lr {lr:.3f} loss {float(loss):.4f}")
    jax.block_until_ready(params)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")
