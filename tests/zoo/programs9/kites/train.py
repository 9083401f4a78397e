"""Keeps a kite in the air; the learning rate falls in stages."""

import argparse
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


def loss_fn(params, wind, pull):
    hidden = jnp.tanh(wind @ params["in"])
    hidden = jnp.tanh(hidden @ params["mid"])
    return jnp.mean((hidden @ params["out"] - pull) ** 2)


def update(params, wind, pull, lr):
    loss, grads = jax.value_and_grad(loss_fn)(params, wind, pull)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads), loss


@partial(jax.jit, static_argnames=("lr",))
def train_step(params, wind, pull, lr):
    return update(params, wind, pull, lr)


@jax.jit
def train_step_traced(params, wind, pull, lr):
    return update(params, wind, pull, lr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace-lr", action="store_true")
    args = parser.parse_args()
    step_fn = train_step_traced if args.trace_lr else train_step
    rng = np.random.default_rng(0)
    params = {
        "in": jnp.asarray(rng.normal(0, 0.1, (64, 512)), jnp.float32),
        "mid": jnp.asarray(rng.normal(0, 0.05, (512, 512)), jnp.float32),
        "out": jnp.asarray(rng.normal(0, 0.05, (512, 2)), jnp.float32),
    }
    wind = rng.standard_normal((20, 512, 64)).astype(np.float32)
    pull = rng.standard_normal((20, 512, 2)).astype(np.float32)
    steps = 120
    start = time.perf_counter()
    for step in range(steps):
        lr = 0.1 * 0.85 ** (step // 10)
        params, loss = step_fn(params, wind[step % 20], pull[step % 20], lr=lr)
        if step % 40 == 39:
            print(f"{step + 1:4d} lr {lr:.4f} loss {float(loss):.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
