"""Shapes of urns through a stack of normalised blocks."""

import argparse
import os
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np

WIDTH = 128
DEPTH = 16


def init(key):
    blocks = []
    for part in jax.random.split(key, DEPTH):
        weight = jax.random.normal(part, (WIDTH, WIDTH)) / WIDTH**0.5
        blocks.append({"w": weight, "b": jnp.zeros(WIDTH), "scale": jnp.ones(WIDTH)})
    return blocks


def normalise(x, scale):
    mean = x.mean(axis=-1, keepdims=True)
    spread = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return scale * (x - mean) / jnp.sqrt(spread + 1e-5)


def loss_of(blocks, x, y):
    for block in blocks:
        x = x + jnp.maximum(normalise(x, block["scale"]) @ block["w"] + block["b"], 0.0)
    return jnp.mean((x.mean(axis=-1) - y) ** 2)


def update(blocks, x, y):
    loss, grads = jax.value_and_grad(loss_of)(blocks, x, y)
    return jax.tree.map(lambda p, g: p - 0.01 * g, blocks, grads), loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jit", action="store_true")
    parser.add_argument("--steps", type=int, default=64)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    urns = jnp.asarray(rng.standard_normal((8, 1280, WIDTH), dtype=np.float32))
    volumes = urns[..., :4].sum(axis=-1)
    parts = [(urns[i], volumes[i]) for i in range(8)]
    blocks = init(jax.random.key(0))
    step_fn = jax.jit(update) if args.jit else update

    start = time.perf_counter()
    for step in range(args.steps):
        x, y = parts[step % 8]
        blocks, loss = step_fn(blocks, x, y)
    loss.block_until_ready()
    seconds = time.perf_counter() - start
    print(f"loss {float(loss):.4f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
