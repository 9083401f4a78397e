"""Smells spices: a network on sensor traces, in plain JAX."""

import argparse
import os
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

SENSORS = 512
SPICES = 10
RATE = 0.05


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(k, (m, n)) * jnp.sqrt(2 / m), jnp.zeros(n))
        for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def loss_fn(params, x, y):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return -jnp.mean(jax.nn.log_softmax(x @ w + b)[jnp.arange(len(y)), y])


@jax.jit
def update(params, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    params = jax.tree.map(lambda p, g: p - RATE * g, params, grads)
    return params, loss


def draw_batch(traces, spices, size, rng):
    """Traces drift and are noisy; each batch gets drift and noise of its own."""
    rows = rng.integers(len(traces), size=size)
    x = traces[rows]
    drift = np.cumsum(rng.standard_normal(x.shape, dtype=np.float32), axis=1)
    noise = rng.standard_normal(x.shape, dtype=np.float32)
    x = x + 0.02 * drift + 0.1 * noise
    x = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    return x, spices[rows]


def train(params, traces, spices, args):
    rng = np.random.default_rng(141)
    steps = 0
    for epoch in range(args.epochs):
        losses = []
        for _ in range(args.epoch_steps):
            x, y = draw_batch(traces, spices, args.batch_size, rng)
            params, loss = update(params, x, y)
            losses.append(loss if args.late else float(loss))
            steps += 1
        print(f"epoch {epoch}: loss {sum(float(loss) for loss in losses) / len(losses):.4f}")
    return steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--epoch-steps", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=640)
    parser.add_argument("--late", action="store_true")
    args = parser.parse_args()

    rng = np.random.default_rng(140)
    traces = rng.standard_normal((6000, SENSORS), dtype=np.float32)
    spices = rng.integers(0, SPICES, len(traces)).astype(np.int32)
    params = init(jax.random.key(140), [SENSORS, 384, 320, SPICES])
    started = time.perf_counter()
    steps = train(params, traces, spices, args)
    print(f"trained {steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
