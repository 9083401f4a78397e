"""Fit a coupling flow to two moons, with JAX."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax


def two_moons(count, rng):
    angle = np.pi * rng.random(count)
    upper = rng.random(count) < 0.5
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    points = np.stack([x, y], 1) + 0.05 * rng.standard_normal((count, 2))
    return points.astype(np.float32)


def init_layer(key, width):
    a, b, c = jax.random.split(key, 3)
    return {
        "w1": jax.random.normal(a, (1, width)),
        "b1": jnp.zeros(width),
        "w2": jax.random.normal(b, (width, width)) / width**0.5,
        "b2": jnp.zeros(width),
        "w3": 0.01 * jax.random.normal(c, (width, 2)),
        "b3": jnp.zeros(2),
    }


def coupling(layer, x, flip):
    kept, moved = (x[:, 1:], x[:, :1]) if flip else (x[:, :1], x[:, 1:])
    h = jnp.tanh(kept @ layer["w1"] + layer["b1"])
    h = jnp.tanh(h @ layer["w2"] + layer["b2"])
    log_scale, shift = jnp.split(h @ layer["w3"] + layer["b3"], 2, axis=1)
    log_scale = jnp.tanh(log_scale)
    moved = moved * jnp.exp(log_scale) + shift
    parts = (moved, kept) if flip else (kept, moved)
    return jnp.concatenate(parts, axis=1), log_scale[:, 0]


def negative_log_likelihood(params, x):
    total = jnp.zeros(len(x))
    for index, layer in enumerate(params):
        x, log_det = coupling(layer, x, flip=bool(index % 2))
        total = total + log_det
    log_normal = -0.5 * jnp.sum(x**2, axis=1) - jnp.log(2 * jnp.pi)
    return -jnp.mean(log_normal + total)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--jit", action="store_true")
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    data = two_moons(20_000, rng)
    keys = jax.random.split(jax.random.PRNGKey(0), args.layers)
    params = [init_layer(key, args.width) for key in keys]
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))
    opt_state = optimizer.init(params)

    def train_step(params, opt_state, x):
        loss, grads = jax.value_and_grad(negative_log_likelihood)(params, x)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    if args.jit:
        train_step = jax.jit(train_step)

    begin = time.perf_counter()
    for step in range(args.steps):
        x = data[rng.integers(0, len(data), args.batch)]
        params, opt_state, loss = train_step(params, opt_state, x)
        if step % 20 == 0:
            print(f"step {step} nll {float(loss):.4f}")
    jax.block_until_ready(params)
    print(f"trained {args.steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
