"""Question 20, JAX: a ladder of residual layers learns a smooth function."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

RUNGS, WIDTH, ROWS = 20, 128, 256

tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))


def init(key):
    params = []
    for key in jax.random.split(key, RUNGS):
        weight = jax.random.normal(key, (WIDTH, WIDTH)) * WIDTH**-0.5
        params.append({"weight": weight, "bias": jnp.zeros(WIDTH), "scale": jnp.ones(WIDTH)})
    return params


def predict(params, x):
    for rung in params:
        x = x + rung["scale"] * jnp.tanh(x @ rung["weight"] + rung["bias"])
    return x.mean(axis=1)


def loss_of(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


gradient = jax.jit(jax.value_and_grad(loss_of))


def update(params, state, grads):
    updates, state = tx.update(grads, state, params)
    return optax.apply_updates(params, updates), state


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=260)
    parser.add_argument("--compiled-update", action="store_true")
    args = parser.parse_args()
    rng = np.random.default_rng(20)
    inputs = rng.normal(size=(8, ROWS, WIDTH)).astype(np.float32)
    targets = np.sin(inputs[:, :, 0])
    params = init(jax.random.key(1))
    state = tx.init(params)
    apply = jax.jit(update) if args.compiled_update else update
    start = time.perf_counter()
    for step in range(args.steps):
        _, grads = gradient(params, inputs[step % 8], targets[step % 8])
        params, state = apply(params, state, grads)
    jax.block_until_ready(params)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
