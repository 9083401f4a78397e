"""Echo classification in JAX with flax and optax."""

import os
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn


class EchoNet(nn.Module):
    width: int = 384

    @nn.compact
    def __call__(self, x):
        for _ in range(3):
            x = nn.gelu(nn.Dense(self.width)(x))
        return nn.Dense(10)(x)


def create(key):
    model = EchoNet()
    params = model.init(key, jnp.zeros((1, 512)))
    tx = optax.adamw(1e-3)

    @jax.jit
    def step(params, state, x, y):
        def loss_fn(p):
            logits = model.apply(p, x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    return params, tx.init(params), step


def main(steps=400, batch=256):
    rng = np.random.default_rng(0)
    echoes = rng.standard_normal((4096, 512), dtype=np.float32)
    labels = rng.integers(0, 10, 4096).astype(np.int32)
    params, state, step = create(jax.random.key(0))
    start = time.perf_counter()
    for i in range(steps):
        at = (i * batch) % len(echoes)
        params, state, loss = step(params, state, echoes[at : at + batch], labels[at : at + batch])
        if (i + 1) % 50 == 0:
            print(i + 1, f"{float(loss):.4f}")
    jax.block_until_ready(params)
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
