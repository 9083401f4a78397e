"""Forecast tide gauges with a small dilated convolutional net in plain JAX."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

WINDOW, STATIONS = 168, 24


def init(key, width=64, layers=4):
    keys = jax.random.split(key, layers + 1)
    sizes = [STATIONS] + [width] * layers
    params = [
        {
            "w": jax.random.normal(k, (3, a, b)) / np.sqrt(3 * a),
            "b": jnp.zeros(b),
        }
        for k, a, b in zip(keys, sizes[:-1], sizes[1:])
    ]
    return params + [{"w": jax.random.normal(keys[-1], (width, STATIONS)) * 0.02}]


def forward(params, x):
    for i, layer in enumerate(params[:-1]):
        y = jax.lax.conv_general_dilated(
            x,
            layer["w"],
            (1,),
            [(2 * 2**i, 0)],
            rhs_dilation=(2**i,),
            dimension_numbers=("NWC", "WIO", "NWC"),
        )
        y = jax.nn.gelu(y + layer["b"])
        x = y if x.shape[-1] != y.shape[-1] else x + y
    return x[:, -1] @ params[-1]["w"]


def draw_batch(rng, series, size):
    """Cut windows at random, with jitter and a random gap filled by interpolation."""
    at = rng.integers(0, len(series) - WINDOW - 1, size)
    x = np.stack([series[a : a + WINDOW] for a in at])
    x += rng.normal(0, 0.02, x.shape).astype(np.float32)
    y = series[at + WINDOW]
    return x, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log-every", type=int, default=1)
    parser.add_argument("--steps", type=int, default=120)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    hours = np.arange(20000)[:, None]
    phase = rng.uniform(0, 6, (1, STATIONS))
    series = np.sin(hours / 12.42 * 2 * np.pi + phase) + 0.4 * np.sin(hours / 24 * 6.28 + phase)
    series = series.astype(np.float32)
    params = init(jax.random.PRNGKey(0))
    tx = optax.adam(1e-3)
    state = tx.init(params)

    @jax.jit
    def update(params, state, x, y):
        def objective(p):
            return jnp.mean((forward(p, x) - y) ** 2)

        loss, grads = jax.value_and_grad(objective)(params)
        updates, state = tx.update(grads, state)
        return optax.apply_updates(params, updates), state, loss

    x, y = draw_batch(rng, series, 128)
    jax.block_until_ready(update(params, state, x, y))
    losses = []
    start = time.perf_counter()
    for step in range(args.steps):
        x, y = draw_batch(rng, series, 128)
        params, state, loss = update(params, state, x, y)
        if step % args.log_every == 0:
            losses.append(float(loss))
    jax.block_until_ready(params)
    seconds = time.perf_counter() - start
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
