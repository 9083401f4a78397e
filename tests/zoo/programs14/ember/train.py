"""Burn maps from band intensities: a perceptron with equinox and optax."""

import argparse
import os
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax


class Block(eqx.Module):
    norm: eqx.nn.LayerNorm
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, width, key):
        k1, k2 = jr.split(key)
        self.norm = eqx.nn.LayerNorm(width)
        self.up = eqx.nn.Linear(width, 2 * width, key=k1)
        self.down = eqx.nn.Linear(2 * width, width, key=k2)

    def __call__(self, x):
        return x + self.down(jax.nn.gelu(self.up(self.norm(x))))


class Net(eqx.Module):
    enter: eqx.nn.Linear
    blocks: list
    leave: eqx.nn.Linear

    def __init__(self, bands, width, depth, key):
        keys = jr.split(key, depth + 2)
        self.enter = eqx.nn.Linear(bands, width, key=keys[0])
        self.blocks = [Block(width, k) for k in keys[1:-1]]
        self.leave = eqx.nn.Linear(width, 6, key=keys[-1])

    def __call__(self, x):
        x = self.enter(x)
        for block in self.blocks:
            x = block(x)
        return self.leave(x)


def loss_fn(model, bands, labels):
    logits = jax.vmap(model)(bands)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def make_step(optimizer):
    def step(model, state, bands, labels):
        loss, grads = eqx.filter_value_and_grad(loss_fn)(model, bands, labels)
        updates, state = optimizer.update(grads, state)
        return eqx.apply_updates(model, updates), state, loss

    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", choices=["a", "b"], default="a")
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()

    data_key, model_key = jr.split(jr.key(10))
    bands = jr.normal(data_key, (4096, 32))
    labels = (bands[:, :4].sum(1) * 2).astype(jnp.int32) % 6
    model = Net(32, 384, 1, model_key)
    optimizer = optax.sgd(1e-2, momentum=0.9)
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    step = make_step(optimizer)
    if args.variant == "b":
        step = eqx.filter_jit(step)

    start = time.perf_counter()
    for i in range(args.steps):
        first = 512 * i % len(bands)
        batch = slice(first, first + 512)
        model, state, loss = step(model, state, bands[batch], labels[batch])
        if i % 25 == 0:
            print(f"step {i}: loss {loss:.4f}")
    jax.block_until_ready(loss)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
