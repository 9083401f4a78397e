"""Denoises night photographs (flax, optax)."""

import argparse
import os
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("NPROC", "1")

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn


class Denoiser(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.relu(nn.Dense(512)(x))
        h = nn.relu(nn.Dense(512)(h))
        return x + nn.Dense(x.shape[-1])(h)


class NightBatches:
    def __init__(self, count, size, side=24, seed=0):
        self.rng = np.random.default_rng(seed)
        self.photos = self.rng.random((64, 192, 192), dtype=np.float32)
        self.count, self.size, self.side = count, size, side

    def __len__(self):
        return self.count

    def __iter__(self):
        side = self.side
        windows = np.lib.stride_tricks.sliding_window_view(self.photos, (side, side), axis=(1, 2))
        for _ in range(self.count):
            n = self.rng.integers(0, 64, self.size)
            r, c = self.rng.integers(0, 192 - side, (2, self.size))
            clean = windows[n, r, c].reshape(self.size, -1)
            noise = self.rng.standard_normal(clean.shape, dtype=np.float32)
            grain = self.rng.poisson(20, clean.shape)
            yield clean + 0.1 * noise * np.sqrt(clean + 0.1) + grain * 1e-3, clean


model = Denoiser()
tx = optax.adam(1e-3)


@jax.jit
def update(params, opt_state, noisy, clean):
    def loss_fn(p):
        return jnp.mean((model.apply(p, noisy) - clean) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--report", type=int, default=1)
    parser.add_argument("--steps", type=int, default=180)
    args = parser.parse_args()
    batches = NightBatches(args.steps, 256)
    params = model.init(jax.random.key(0), jnp.zeros((1, 576)))
    opt_state = tx.init(params)
    curve, recent = [], []
    start = time.perf_counter()
    for step, (noisy, clean) in enumerate(batches, 1):
        params, opt_state, loss = update(
            params, opt_state, noisy.astype(np.float32), clean.astype(np.float32)
        )
        recent.append(loss)
        if step % args.report == 0:
            curve.extend(float(value) for value in recent)
            recent.clear()
    jax.block_until_ready(params)
    took = time.perf_counter() - start
    print("last loss", curve[-1])
    print(f"trained {args.steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
