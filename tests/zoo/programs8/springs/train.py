"""Fit a neural spring-mass model with Equinox."""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Force(eqx.Module):
    layers: list
    scale: jax.Array

    def __init__(self, key, size=16, width=256, depth=3):
        keys = jax.random.split(key, depth + 1)
        sizes = [2 * size] + [width] * depth + [size]
        self.layers = [eqx.nn.Linear(a, b, key=k) for a, b, k in zip(sizes, sizes[1:], keys)]
        self.scale = jnp.ones(())

    def __call__(self, position, velocity):
        x = jnp.concatenate([position, velocity])
        for layer in self.layers[:-1]:
            x = jax.nn.softplus(layer(x))
        return self.scale * self.layers[-1](x)


def integrate(force, position, velocity, steps=2, dt=0.1):
    for _ in range(steps):
        velocity = velocity + dt * jax.vmap(force)(position, velocity)
        position = position + dt * velocity
    return position


def loss_fn(force, batch):
    position, velocity, later = batch
    return jnp.mean((integrate(force, position, velocity) - later) ** 2)


def make_step(force, state, batch, optim):
    loss, grads = eqx.filter_value_and_grad(loss_fn)(force, batch)
    updates, state = optim.update(grads, state, eqx.filter(force, eqx.is_array))
    return eqx.apply_updates(force, updates), state, loss


def make_data(count, size=16, seed=0):
    rng = np.random.default_rng(seed)
    position, velocity = rng.normal(0, 1, (2, count, size)).astype(np.float32)
    later = position * np.cos(0.2) + velocity * np.sin(0.2)
    return position, velocity, later


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jit", action="store_true")
    parser.add_argument("--steps", type=int, default=90)
    args = parser.parse_args()
    data = make_data(4096)
    force = Force(jax.random.PRNGKey(0))
    optim = optax.adam(1e-3)
    state = optim.init(eqx.filter(force, eqx.is_array))
    step_fn = eqx.filter_jit(make_step) if args.jit else make_step
    rng = np.random.default_rng(1)
    start = time.perf_counter()
    for step in range(args.steps):
        pick = rng.integers(0, 4096, 256)
        batch = tuple(part[pick] for part in data)
        force, state, loss = step_fn(force, state, batch, optim)
        if step % 25 == 0:
            print(f"step={step} loss={loss.item():.5f}")
    jax.block_until_ready(force.scale)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
