"""JAX computes in the background while the next batch is being made, if it is let."""

import argparse
import os
import time

# One core is for JAX, the other for the batches.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402


def init(rng, sizes):
    return [
        jnp.asarray(rng.normal(size=(n, m)) / n**0.5, jnp.float32)
        for n, m in zip(sizes[:-1], sizes[1:])
    ]


def loss_fn(params, x, y):
    for w in params[:-1]:
        x = jnp.tanh(x @ w)
    return jnp.mean((x @ params[-1] - y) ** 2)


@jax.jit
def train_step(params, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    return [p - 0.05 * g for p, g in zip(params, grads)], loss


def make_batch(rng, size=512):
    """Simulate a noisy oscillator."""
    phase = rng.uniform(0, 2 * np.pi, (size, 1))
    t = np.linspace(0, 8, 256)[None]
    wave = np.sin(t + phase) + 0.3 * np.sin(3 * t + 2 * phase) + rng.normal(0, 0.1, (size, 256))
    return wave.astype(np.float32), np.cos(phase).astype(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=220)
    parser.add_argument("--report-every", type=int, default=1)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    params = init(rng, [256, 640, 640, 1])
    history = []
    start = time.perf_counter()
    for step in range(args.steps):
        x, y = make_batch(rng)
        params, loss = train_step(params, x, y)
        if step % args.report_every == 0:
            history.append(float(loss))
    jax.block_until_ready(params)
    print(f"loss {history[-1]:.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
