"""Train a small network with JAX alone.

    stepwatch run examples/python/jax_loop.py --epochs 3

Nothing here knows of stepwatch. The report shows steps, compilations with their reasons, and the
lines that wait for results. One thing compiles more often than it should: which?
"""

from __future__ import annotations

import argparse

import jax
import jax.numpy as jnp
import numpy as np


def init(rng, sizes):
    """Return the weights of a network with layers of these sizes."""
    return [
        {"w": jnp.asarray(rng.normal(size=(n, m)) / n**0.5, jnp.float32), "b": jnp.zeros(m)}
        for n, m in zip(sizes[:-1], sizes[1:])
    ]


def forward(params, x):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params, x, y):
    return jnp.mean((forward(params, x) - y) ** 2)


@jax.jit
def train_step(params, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    return jax.tree_util.tree_map(lambda p, g: p - 0.05 * g, params, grads), loss


@jax.jit
def eval_step(params, x, y):
    return loss_fn(params, x, y)


def batches(x, y, size):
    for begin in range(0, len(x), size):
        yield x[begin : begin + size], y[begin : begin + size]  # the last one is shorter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=5000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(options.samples, 16)).astype(np.float32)
    y = np.sin(x.sum(axis=1, keepdims=True))
    params = init(rng, [16, 64, 64, 1])
    for epoch in range(options.epochs):
        for batch in batches(x, y, 64):
            params, loss = train_step(params, *batch)
        losses = [eval_step(params, *batch) for batch in batches(x[:1000], y[:1000], 100)]
        print(f"epoch {epoch}: loss {float(loss):.4f}, validation {np.mean(losses):.4f}")


if __name__ == "__main__":
    main()
