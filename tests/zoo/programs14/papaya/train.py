"""A sequence model of growth records, in JAX; records differ in length."""

import argparse
import os
import time
from functools import partial

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp
import numpy as np
import optax


def init_params(key, n_in=16, width=192):
    keys = jax.random.split(key, 4)
    return {
        "enter": jax.random.normal(keys[0], (n_in, width)) * 0.2,
        "mix1": jax.random.normal(keys[1], (3 * width, width)) * 0.04,
        "mix2": jax.random.normal(keys[2], (3 * width, width)) * 0.04,
        "out": jax.random.normal(keys[3], (width, 1)) * 0.1,
    }


def neighbours(h):
    wide = jnp.pad(h, ((0, 0), (1, 1), (0, 0)))
    return jnp.concatenate([wide[:, :-2], h, wide[:, 2:]], -1)


def predict(params, x, mask):
    h = jax.nn.relu(x @ params["enter"])
    h = h + jax.nn.relu(neighbours(h) @ params["mix1"])
    h = h + jax.nn.relu(neighbours(h) @ params["mix2"])
    h = (h * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return (h @ params["out"])[:, 0]


@partial(jax.jit, static_argnums=0)
def train_step(optimizer, params, state, x, mask, y):
    def loss_fn(p):
        return jnp.mean((predict(p, x, mask) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def batches(count, size, multiple, rng):
    for _ in range(count):
        longest = 4 * int(np.clip(rng.normal(12, 2.2), 8, 16))
        lengths = rng.integers(24, longest, size)
        lengths[0] = longest
        padded = -(-longest // multiple) * multiple
        x = rng.standard_normal((size, padded, 16), dtype=np.float32)
        mask = (np.arange(padded) < lengths[:, None]).astype(np.float32)
        yield x, mask, (x[..., 0] * mask).sum(1) / lengths


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pad-multiple", type=int, default=1)
    parser.add_argument("--steps", type=int, default=140)
    args = parser.parse_args()
    rng = np.random.default_rng(23)
    params = init_params(jax.random.key(23))
    optimizer = optax.sgd(1e-3, momentum=0.9)
    state = optimizer.init(params)
    start = time.perf_counter()
    for i, (x, mask, y) in enumerate(batches(args.steps, 12, args.pad_multiple, rng)):
        params, state, loss = train_step(optimizer, params, state, x, mask, y.astype(np.float32))
        if i % 35 == 0:
            print(f"step {i} loss {loss:.4f}")
    jax.block_until_ready(params)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
