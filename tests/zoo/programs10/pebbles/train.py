"""Roundness of pebbles from their outline: an equinox model with optax."""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

POINTS = 64


class Residual(eqx.Module):
    norm: eqx.nn.LayerNorm
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, width, key):
        first, second = jax.random.split(key)
        self.norm = eqx.nn.LayerNorm(width)
        self.up = eqx.nn.Linear(width, width, key=first)
        self.down = eqx.nn.Linear(width, width, key=second)

    def __call__(self, x):
        return x + self.down(jax.nn.relu(self.up(self.norm(x))))


class Outline(eqx.Module):
    first: eqx.nn.Linear
    blocks: list
    last: eqx.nn.Linear

    def __init__(self, width, depth, key):
        keys = jax.random.split(key, depth + 2)
        self.first = eqx.nn.Linear(POINTS, width, key=keys[0])
        self.blocks = [Residual(width, k) for k in keys[1:-1]]
        self.last = eqx.nn.Linear(width, 1, key=keys[-1])

    def __call__(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x)[0]


def loss_fn(model, outlines, roundness):
    return jnp.mean((jax.vmap(model)(outlines) - roundness) ** 2)


optimizer = optax.adam(1e-3)


def train_step(model, state, outlines, roundness):
    loss, grads = eqx.filter_value_and_grad(loss_fn)(model, outlines, roundness)
    updates, state = optimizer.update(grads, state)
    return eqx.apply_updates(model, updates), state, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=70)
    parser.add_argument("--batch-size", type=int, default=384)
    parser.add_argument("--jit", action="store_true")
    args = parser.parse_args()

    rng = np.random.default_rng(150)
    outlines = rng.standard_normal((4096, POINTS), dtype=np.float32)
    roundness = np.abs(outlines).mean(axis=1)
    model = Outline(256, 4, jax.random.key(150))
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    step_fn = eqx.filter_jit(train_step) if args.jit else train_step

    started = time.perf_counter()
    for step in range(1, args.steps + 1):
        rows = rng.integers(len(outlines), size=args.batch_size)
        model, state, loss = step_fn(model, state, outlines[rows], roundness[rows])
        if step % 20 == 0:
            print(f"step {step}: loss {loss:.5f}")
    jax.block_until_ready(loss)
    print(f"trained {args.steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
