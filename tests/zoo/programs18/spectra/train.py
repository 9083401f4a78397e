"""Concentrations from spectra: a deep residual network in JAX."""

import os
import sys
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import optax

DEPTH, WIDTH, CHANNELS = 10, 160, 256


def init_params(key):
    k0, k1, *keys = jax.random.split(key, DEPTH + 2)
    params = {
        "enter": {"w": jax.random.normal(k0, (CHANNELS, WIDTH)) * 0.05, "b": jnp.zeros(WIDTH)},
        "leave": {"w": jax.random.normal(k1, (WIDTH, 4)) * 0.05, "b": jnp.zeros(4)},
    }
    for i, k in enumerate(keys):
        params[f"block{i}"] = {
            "w": jax.random.normal(k, (WIDTH, WIDTH)) * 0.05,
            "b": jnp.zeros(WIDTH),
            "scale": jnp.ones(WIDTH),
        }
    return params


def predict(params, x):
    x = x @ params["enter"]["w"] + params["enter"]["b"]
    for i in range(DEPTH):
        p = params[f"block{i}"]
        x = x + p["scale"] * jax.nn.gelu(x @ p["w"] + p["b"])
    return x @ params["leave"]["w"] + params["leave"]["b"]


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
grad_fn = jax.jit(jax.value_and_grad(loss_fn))


def apply_gradients(params, opt_state, grads):
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state


def step(params, opt_state, x, y):
    loss, grads = grad_fn(params, x, y)
    params, opt_state = apply_gradients(params, opt_state, grads)
    return params, opt_state, loss


if "whole" in sys.argv[1:]:
    step = jax.jit(step)


def main():
    kx, ky, kp = jax.random.split(jax.random.key(1), 3)
    x = jax.random.normal(kx, (16, 192, CHANNELS))
    y = jax.random.normal(ky, (16, 192, 4))
    params = init_params(kp)
    opt_state = tx.init(params)
    batches = [(x[i], y[i]) for i in range(16)]
    t0 = time.time()
    for i in range(160):
        params, opt_state, loss = step(params, opt_state, *batches[i % 16])
        if i % 40 == 39:
            print(i + 1, float(loss))
    print(f"trained 160 steps in {time.time() - t0:.3f} s")


main()
