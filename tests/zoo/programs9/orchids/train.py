"""Orchid measurements and an Equinox network with many narrow layers."""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Tower(eqx.Module):
    layers: list
    head: eqx.nn.Linear

    def __init__(self, key, width=48, depth=3):
        keys = jax.random.split(key, depth + 1)
        self.layers = [eqx.nn.Linear(width, width, key=k) for k in keys[:-1]]
        self.head = eqx.nn.Linear(width, 3, key=keys[-1])

    def __call__(self, x):
        for layer in self.layers:
            x = x + jax.nn.silu(layer(x))
        return self.head(x)


def loss_fn(model, x, y):
    logits = jax.vmap(model)(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def train_step(model, state, x, y, optim):
    loss, grads = eqx.filter_value_and_grad(loss_fn)(model, x, y)
    updates, state = optim.update(grads, state)
    return eqx.apply_updates(model, updates), state, loss


parser = argparse.ArgumentParser()
parser.add_argument("--jit", action="store_true")
args = parser.parse_args()
optim = optax.adam(1e-3)
model = Tower(jax.random.key(1))
state = optim.init(eqx.filter(model, eqx.is_array))
step_fn = eqx.filter_jit(train_step) if args.jit else train_step
rng = np.random.default_rng(0)
xs = jnp.asarray(rng.standard_normal((2048, 48)), dtype=jnp.float32)
ys = jnp.asarray(rng.integers(0, 3, 2048))
steps = 50
start = time.perf_counter()
for step in range(steps):
    rows = rng.integers(0, 2048, 128)
    model, state, loss = step_fn(model, state, xs[rows], ys[rows], optim)
print(f"loss {float(loss):.3f}")
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
