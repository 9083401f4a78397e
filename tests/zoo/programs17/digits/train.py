"""Small convolutional classifier in JAX with optax."""

import argparse
import os
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np
import optax

ap = argparse.ArgumentParser()
ap.add_argument("--steps", type=int, default=240)
ap.add_argument("--report-every", type=int, default=1)
args = ap.parse_args()

rng = np.random.default_rng(0)
images = rng.integers(0, 255, (4096, 28, 28), dtype=np.uint8)
labels = rng.integers(0, 10, 4096)


def next_batch(n=128):
    idx = rng.integers(0, len(images), n)
    x = images[idx].astype(np.float32) / 255.0
    for i in range(n):
        dy, dx = rng.integers(-2, 3, 2)
        x[i] = np.roll(x[i], (dy, dx), axis=(0, 1)) * rng.uniform(0.9, 1.1)
    x *= rng.normal(1, 0.1, x.shape).astype(np.float32)
    x += rng.normal(0, 0.05, x.shape).astype(np.float32)
    return x.reshape(n, -1), labels[idx]


def init(key, sizes=(784, 512, 512, 10)):
    keys = jax.random.split(key, len(sizes))
    return [
        {"w": jax.random.normal(k, (i, o)) * (2 / i) ** 0.5, "b": jnp.zeros(o)}
        for k, i, o in zip(keys, sizes, sizes[1:])
    ]


def loss_fn(params, x, y):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    logits = x @ params[-1]["w"] + params[-1]["b"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


tx = optax.sgd(0.05, momentum=0.9)


@jax.jit
def update(params, state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = tx.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


params = init(jax.random.PRNGKey(0))
state = tx.init(params)
history = []
start = time.perf_counter()
for step in range(1, args.steps + 1):
    x, y = next_batch()
    params, state, loss = update(params, state, x, y)
    if step % args.report_every == 0:
        history.append(float(loss))
jax.block_until_ready(params)
took = time.perf_counter() - start
print(f"mean loss {history[-1]:.3f}")
print(f"trained {args.steps} steps in {took:.3f} s")
