"""Visibility at sea from weather sequences, in equinox."""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Mixer(eqx.Module):
    time: eqx.nn.Linear
    channels: eqx.nn.MLP
    norm: eqx.nn.LayerNorm

    def __init__(self, length, width, key):
        a, b = jax.random.split(key)
        self.time = eqx.nn.Linear(length, length, key=a)
        self.channels = eqx.nn.MLP(width, width, 4 * width, 1, jax.nn.gelu, key=b)
        self.norm = eqx.nn.LayerNorm(width)

    def __call__(self, x):
        x = x + jax.vmap(self.time, 1, 1)(x)
        return x + jax.vmap(self.channels)(jax.vmap(self.norm)(x))


class Forecast(eqx.Module):
    inlet: eqx.nn.Linear
    mixers: list
    outlet: eqx.nn.Linear

    def __init__(self, features=12, length=48, width=64, depth=2, *, key):
        keys = jax.random.split(key, depth + 2)
        self.inlet = eqx.nn.Linear(features, width, key=keys[0])
        self.mixers = [Mixer(length, width, k) for k in keys[1:-1]]
        self.outlet = eqx.nn.Linear(width, 1, key=keys[-1])

    def __call__(self, x):
        x = jax.vmap(self.inlet)(x)
        for mixer in self.mixers:
            x = mixer(x)
        return self.outlet(x.mean(0))[0]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--batch", type=int, default=32)
    a = p.parse_args()
    rng = np.random.default_rng(0)
    weather = rng.standard_normal((3000, 48, 12), dtype=np.float32)
    visibility = weather[:, -6:, 0].mean(1)

    model = Forecast(key=jax.random.key(3))
    tx = optax.adamw(1e-3)
    state = tx.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step_fn(model, state, x, y):
        def loss_fn(m):
            return jnp.mean((jax.vmap(m)(x) - y) ** 2)

        loss, grads = eqx.filter_value_and_grad(loss_fn)(model)
        updates, state = tx.update(grads, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), state, loss

    began = time.perf_counter()
    for step in range(a.steps):
        rows = rng.integers(0, len(weather), a.batch)
        model, state, loss = step_fn(model, state, weather[rows], visibility[rows])
        if step % 40 == 39:
            print(f"{step + 1:4d} mse {float(loss):.4f}")
    jax.block_until_ready(loss)
    print(f"trained {a.steps} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
