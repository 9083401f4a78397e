"""Ice velocity from image pairs: equinox model, batches cut on the host."""

import argparse
import os
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class VelocityNet(eqx.Module):
    layers: list
    head: eqx.nn.Linear

    def __init__(self, key, inputs, width=320):
        a, b, c = jax.random.split(key, 3)
        self.layers = [eqx.nn.Linear(inputs, width, key=a), eqx.nn.Linear(width, width, key=b)]
        self.head = eqx.nn.Linear(width, 2, key=c)

    def __call__(self, x):
        for layer in self.layers:
            x = jax.nn.gelu(layer(x))
        return self.head(x)


def mse(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


class Patches:
    def __init__(self, side=16, size=384, seed=9):
        self.rng = np.random.default_rng(seed)
        self.scene = self.rng.standard_normal((1024, 1024)).astype(np.float32)
        self.side, self.size = side, size

    def cut(self, corners):
        side = self.side
        patch = np.stack([self.scene[r : r + side, c : c + side] for r, c in corners])
        patch = patch + self.rng.normal(0, 0.05, patch.shape).astype(np.float32)
        patch = (patch - patch.mean((1, 2), keepdims=True)) / patch.std((1, 2), keepdims=True)
        return patch.reshape(len(corners), -1)

    def batch(self):
        before = self.rng.integers(8, 1016 - self.side, (self.size, 2))
        shift = self.rng.integers(-8, 9, (self.size, 2))
        pair = [self.cut(before), self.cut(before + shift)]
        return np.concatenate(pair, axis=1), shift.astype(np.float32) / 8


class Progress:
    def __init__(self, every):
        self.every = every
        self.smooth = None

    def __call__(self, step, loss):
        if step % self.every:
            return
        value = float(loss)
        self.smooth = value if self.smooth is None else 0.95 * self.smooth + 0.05 * value
        if step % 50 == 0:
            print(f"{step:5d} {self.smooth:.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--progress-every", type=int, default=1)
    args = parser.parse_args()
    patches = Patches()
    model = VelocityNet(jax.random.key(1), 512)
    optimizer = optax.adam(1e-3)
    state = optimizer.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step_fn(model, state, x, y):
        loss, grads = eqx.filter_value_and_grad(mse)(model, x, y)
        updates, state = optimizer.update(grads, state)
        return eqx.apply_updates(model, updates), state, loss

    progress = Progress(args.progress_every)
    start = time.perf_counter()
    for step in range(args.steps):
        x, y = patches.batch()
        model, state, loss = step_fn(model, state, x, y)
        progress(step, loss)
    jax.block_until_ready(loss)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
