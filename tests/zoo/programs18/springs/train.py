"""Learns the force law of a spring from recorded motions. JAX and optax."""

import argparse
import os
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np
import optax


def motions(count, shortest, longest, seed=0):
    rng = np.random.default_rng(seed)
    made = []
    for length in np.sort(rng.choice(np.linspace(shortest, longest, 9, dtype=int), count)):
        t = np.linspace(0, 6, length, dtype=np.float32)
        phase = rng.uniform(0, 6, (12, 1)).astype(np.float32)
        x = np.stack([np.sin(t + phase), np.cos(t + phase)], axis=-1)
        made.append((x, -x[..., :1]))
    return made


def pad_to(motion, length):
    x, force = motion
    mask = np.zeros(x.shape[:2], np.float32)
    mask[:] = 1
    space = ((0, 0), (0, length - x.shape[1]))
    return (
        np.pad(x, (*space, (0, 0))),
        np.pad(force, (*space, (0, 0))),
        np.pad(mask, space),
    )


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"w": jax.random.normal(k, (m, n)) / jnp.sqrt(m), "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def apply(params, x):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params, x, force, mask):
    error = jnp.square(apply(params, x) - force).sum(axis=-1)
    return (error * mask).sum() / mask.sum()


optimizer = optax.adam(1e-3)


@jax.jit
def train_step(params, state, x, force, mask):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, force, mask)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--length", type=int, default=0)
    args = parser.parse_args()
    data = motions(200, 80, 112)
    params = init(jax.random.key(0), [2, 256, 256, 256, 1])
    state = optimizer.init(params)
    start = time.perf_counter()
    for motion in data:
        batch = pad_to(motion, args.length or motion[0].shape[1])
        params, state, loss = train_step(params, state, *batch)
    print("loss", float(loss))
    print(f"trained {len(data)} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
