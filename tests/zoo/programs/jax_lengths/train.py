"""Sequences of different lengths through a recurrent network in JAX."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np


def init(key, vocabulary=64, width=96):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    return {
        "embedding": jax.random.normal(k1, (vocabulary, width)) * 0.1,
        "w": jax.random.normal(k2, (width, width)) / width**0.5,
        "u": jax.random.normal(k3, (width, width)) / width**0.5,
        "out": jax.random.normal(k4, (width, 2)) / width**0.5,
    }


def loss_fn(params, ids, mask, labels):
    def cell(h, inputs):
        x, keep = inputs
        new = jnp.tanh(x @ params["w"] + h @ params["u"])
        return jnp.where(keep[:, None], new, h), None

    x = params["embedding"][ids].swapaxes(0, 1)
    h = jnp.zeros((ids.shape[0], params["w"].shape[1]))
    h, _ = jax.lax.scan(cell, h, (x, mask.swapaxes(0, 1)))
    log_p = jax.nn.log_softmax(h @ params["out"])
    return -jnp.mean(log_p[jnp.arange(len(labels)), labels])


@jax.jit
def train_step(params, ids, mask, labels):
    loss, grads = jax.value_and_grad(loss_fn)(params, ids, mask, labels)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads), loss


def batches(steps, size, longest, pad_to):
    rng = np.random.default_rng(0)
    for _ in range(steps):
        lengths = rng.integers(20, rng.integers(24, longest), size)
        width = pad_to or lengths.max()
        ids = rng.integers(0, 64, (size, width))
        mask = np.arange(width)[None] < lengths[:, None]
        yield ids, mask, rng.integers(0, 2, size)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--pad-to", type=int, default=None)
    args = parser.parse_args()
    params = init(jax.random.PRNGKey(0))
    start = time.perf_counter()
    for ids, mask, labels in batches(args.steps, 32, 160, args.pad_to):
        params, loss = train_step(params, ids, mask, labels)
    print(f"loss {float(loss):.3f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
