"""Fit a temperature field over a map with an equinox MLP; the smoothness term grows with time."""

import argparse
import os
import time

os.environ.setdefault("NPROC", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Field(eqx.Module):
    frequencies: jax.Array
    layers: list
    out: eqx.nn.Linear

    def __init__(self, key, width=320, depth=2, waves=32):
        keys = jax.random.split(key, depth + 2)
        self.frequencies = jax.random.normal(keys[0], (waves, 2)) * 3.0
        sizes = [2 * waves] + [width] * depth
        self.layers = [
            eqx.nn.Linear(a, b, key=k) for a, b, k in zip(sizes, sizes[1:], keys[1:], strict=False)
        ]
        self.out = eqx.nn.Linear(width, 1, key=keys[-1])

    def __call__(self, place):
        angles = jax.lax.stop_gradient(self.frequencies) @ place
        x = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)])
        for layer in self.layers:
            x = jax.nn.gelu(layer(x))
        return self.out(x)[0]


def objective(model, places, values, near, smooth):
    predicted = jax.vmap(model)(places)
    slope = (jax.vmap(model)(near) - predicted) / 0.01
    return jnp.mean((predicted - values) ** 2) + smooth * jnp.mean(slope**2)


optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))


@eqx.filter_jit
def make_step(model, state, places, values, near, smooth):
    loss, grads = eqx.filter_value_and_grad(objective)(model, places, values, near, smooth)
    updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), state, loss


def stations(count, rng):
    places = rng.uniform(-1, 1, (count, 2)).astype(np.float32)
    values = np.sin(3 * places[:, 0]) * np.cos(2 * places[:, 1]) + 0.3 * places.sum(1)
    return places, (values + rng.normal(0, 0.05, count)).astype(np.float32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--per-epoch", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=320)
    parser.add_argument("--smooth", type=float, default=1e-4)
    parser.add_argument("--smooth-as", choices=["number", "array"], default="number")
    args = parser.parse_args()
    rng = np.random.default_rng(30)
    places, values = stations(4000, rng)
    model = Field(jax.random.key(30))
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        smooth = args.smooth * (epoch + 1) / args.epochs
        if args.smooth_as == "array":
            smooth = jnp.asarray(smooth)
        losses = []
        for _ in range(args.per_epoch):
            rows = rng.integers(0, len(places), args.batch_size)
            near = places[rows] + rng.normal(0, 0.01, (len(rows), 2)).astype(np.float32)
            model, state, loss = make_step(model, state, places[rows], values[rows], near, smooth)
            losses.append(loss)
            steps += 1
        print(f"epoch {epoch}: {jnp.stack(losses).mean():.4f}")
    seconds = time.perf_counter() - start
    eqx.tree_serialise_leaves("field.eqx", model)
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
