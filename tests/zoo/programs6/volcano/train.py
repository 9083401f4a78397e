"""Eruption forecasts from tremor features; flax and optax."""

import time
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Batch(NamedTuple):
    tremor: np.ndarray
    erupted: np.ndarray


class Forecaster(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (640, 640, 320):
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(1)(x)[:, 0]


model = Forecaster()
optimizer = optax.adamw(optax.cosine_decay_schedule(1e-3, 200))


@jax.jit
def step(params, state, batch):
    def loss_fn(p):
        logits = model.apply(p, batch.tremor)
        return optax.sigmoid_binary_cross_entropy(logits, batch.erupted).mean()

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def stream(n, size=512):
    rng = np.random.default_rng(2)
    tremor = rng.standard_normal((8192, 128), dtype=np.float32)
    erupted = (tremor[:, 0] > 0.5).astype(np.float32)
    for _ in range(n):
        rows = rng.integers(0, len(tremor), size)
        yield Batch(tremor[rows], erupted[rows])


def main(steps=200):
    params = model.init(jax.random.key(0), jnp.zeros((1, 128)))
    state = optimizer.init(params)
    start = time.perf_counter()
    for i, batch in enumerate(stream(steps)):
        params, state, loss = step(params, state, batch)
        if i % 50 == 0:
            print(i, f"{loss:.4f}")
    jax.block_until_ready(params)
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
