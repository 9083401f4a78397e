"""Movement of dunes: a small physics-informed fit in JAX."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--precision", type=int, choices=[32, 64], default=64)
args = parser.parse_args()
jax.config.update("jax_enable_x64", args.precision == 64)
kind = np.float64 if args.precision == 64 else np.float32


def forward(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


@jax.jit
def update(params, x, y):
    def loss_fn(p):
        return jnp.mean((forward(p, x) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss


def main():
    rng = np.random.default_rng(0)
    sizes = [128, 384, 384, 384, 1]
    params = [
        (jnp.asarray(rng.normal(0, m**-0.5, (m, n)).astype(kind)), jnp.zeros(n, kind))
        for m, n in zip(sizes[:-1], sizes[1:])
    ]
    xs = rng.normal(size=(16, 384, 128)).astype(kind)
    ys = rng.normal(size=(16, 384, 1)).astype(kind)
    steps = 160
    start = time.perf_counter()
    for step in range(steps):
        params, loss = update(params, xs[step % 16], ys[step % 16])
        if step % 40 == 39:
            print(f"step {step + 1}: {float(loss):.4f}")
    jax.block_until_ready(params)
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
