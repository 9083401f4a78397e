"""Salinity of an estuary from noisy soundings, in JAX."""

import argparse
import os
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np
import optax

parser = argparse.ArgumentParser()
parser.add_argument("--report-every", type=int, default=1)
args = parser.parse_args()
WIDTH, BATCH, STEPS = 512, 256, 150
rng = np.random.default_rng(0)
tx = optax.adam(1e-3)


def init(key, sizes):
    keys = jax.random.split(key, len(sizes))
    return [
        (jax.random.normal(k, (m, n)) / m**0.5, jnp.zeros(n))
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def loss_fn(params, x, y):
    for w, b in params[:-1]:
        x = jax.nn.gelu(x @ w + b)
    w, b = params[-1]
    return jnp.mean((x @ w + b - y) ** 2)


@jax.jit
def update(params, state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = tx.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def soundings():
    x = rng.standard_normal((BATCH, WIDTH)).astype(np.float32)
    for _ in range(3):
        x = np.sort(x + 0.1 * rng.standard_normal(x.shape).astype(np.float32), axis=1)
    return x, x[:, :4].copy()


params = init(jax.random.key(0), [WIDTH, WIDTH, WIDTH, 4])
state = tx.init(params)
x, y = soundings()
jax.block_until_ready(update(params, state, x, y))
start = time.perf_counter()
for step in range(STEPS):
    x, y = soundings()
    params, state, loss = update(params, state, x, y)
    if step % args.report_every == 0:
        print(f"step {step}: loss {float(loss):.4f}")
jax.block_until_ready(params)
print(f"trained {STEPS} steps in {time.perf_counter() - start:.3f} s")
