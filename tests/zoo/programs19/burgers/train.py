"""Burgers' equation with a physics-informed network in JAX."""

import argparse
import os
import time

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import jax
import jax.numpy as jnp
import numpy as np
import optax


def init(key, sizes, kind):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        layers.append((jax.random.normal(sub, (a, b), kind) / np.sqrt(a), jnp.zeros(b, kind)))
    return layers


def network(layers, t, x):
    h = jnp.stack([t, x])
    for w, b in layers[:-1]:
        h = jnp.tanh(h @ w + b)
    w, b = layers[-1]
    return (h @ w + b)[0]


def residual(layers, t, x, viscosity=0.01 / np.pi):
    u = network(layers, t, x)
    u_t = jax.grad(network, 1)(layers, t, x)
    u_x = jax.grad(network, 2)(layers, t, x)
    u_xx = jax.grad(jax.grad(network, 2), 2)(layers, t, x)
    return u_t + u * u_x - viscosity * u_xx


def objective(layers, inner, start):
    inside = jax.vmap(residual, (None, 0, 0))(layers, inner[:, 0], inner[:, 1])
    first = jax.vmap(network, (None, 0, 0))(layers, jnp.zeros_like(start), start)
    return jnp.mean(inside**2) + jnp.mean((first + jnp.sin(jnp.pi * start)) ** 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", choices=["single", "double"], default="double")
    parser.add_argument("--steps", type=int, default=160)
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", args.precision == "double")
    kind = jnp.float64 if args.precision == "double" else jnp.float32

    layers = init(jax.random.PRNGKey(4), [2, 64, 64, 64, 1], kind)
    optimizer = optax.adam(1e-3)
    state = optimizer.init(layers)

    @jax.jit
    def step(layers, state, inner, start):
        loss, grads = jax.value_and_grad(objective)(layers, inner, start)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(layers, updates), state, loss

    rng = np.random.default_rng(4)
    inner = jnp.asarray(rng.uniform((0, -1), (1, 1), (16, 3072, 2)), kind)
    start = jnp.asarray(rng.uniform(-1, 1, (16, 128)), kind)
    jax.block_until_ready(step(layers, state, inner[0], start[0]))

    begin = time.perf_counter()
    for k in range(args.steps):
        layers, state, loss = step(layers, state, inner[k % 16], start[k % 16])
    loss.block_until_ready()
    seconds = time.perf_counter() - begin
    print(f"loss {float(loss):.4f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
