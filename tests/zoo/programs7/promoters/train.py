"""Promoter or not, from the sequence alone."""

import argparse
import random
import time

import jax
import jax.numpy as jnp
import optax
import sequences


def init(key, width=96):
    a, b, c = jax.random.split(key, 3)
    return {
        "conv1": jax.random.normal(a, (11, 4, width)) * 0.1,
        "conv2": jax.random.normal(b, (7, width, width)) * 0.03,
        "out": jax.random.normal(c, (width,)) * 0.1,
    }


def conv(x, w, stride):
    return jax.lax.conv_general_dilated(
        x, w, (stride,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
    )


def score(params, x):
    h = jax.nn.relu(conv(x, params["conv1"], 2))
    h = jax.nn.relu(conv(h, params["conv2"], 2))
    return h.max(1) @ params["out"]


tx = optax.adam(1e-3)


@jax.jit
def update(params, state, x, y):
    def loss_fn(p):
        return optax.sigmoid_binary_cross_entropy(score(p, x), y).mean()

    loss, grads = jax.value_and_grad(loss_fn)(params)
    changes, state = tx.update(grads, state)
    return optax.apply_updates(params, changes), state, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--encoder", default="one_hot", choices=["one_hot", "one_hot_table"])
    args = parser.parse_args()
    encode = getattr(sequences, args.encoder)
    data = sequences.make(2000, 300)
    picker = random.Random(1)
    params = init(jax.random.key(0))
    state = tx.init(params)

    began = time.perf_counter()
    for step in range(1, args.steps + 1):
        chosen = picker.sample(data, 64)
        x = encode([sequence for sequence, _ in chosen])
        y = jnp.array([label for _, label in chosen], jnp.float32)
        params, state, loss = update(params, state, x, y)
        if step % 40 == 0:
            print(f"step {step}: loss {float(loss):.4f}")
    jax.block_until_ready(params)
    print(f"trained {args.steps} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
