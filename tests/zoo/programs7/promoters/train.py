"""Promoter or not, from the sequence alone."""

import argparse
import random
import time

import jax
import jax.numpy as jnp
import optax
import sequences


def init(key, width=768):
    a, b, c = jax.random.split(key, 3)
    return {
        "first": jax.random.normal(a, (256, width)) * 0.06,
        "second": jax.random.normal(b, (width, width)) * 0.04,
        "out": jax.random.normal(c, (width,)) * 0.04,
    }


def score(params, x):
    h = jax.nn.relu(x @ params["first"])
    return jax.nn.relu(h @ params["second"]) @ params["out"]


tx = optax.sgd(1e-2, momentum=0.9)


@jax.jit
def update(params, state, x, y):
    def loss_fn(p):
        return optax.sigmoid_binary_cross_entropy(score(p, x), y).mean()

    loss, grads = jax.value_and_grad(loss_fn)(params)
    changes, state = tx.update(grads, state)
    return optax.apply_updates(params, changes), state, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--encoder", default="words", choices=["words", "words_by_code"])
    args = parser.parse_args()
    encode = getattr(sequences, args.encoder)
    data = sequences.make(3000, 400)
    picker = random.Random(1)
    params = init(jax.random.key(0))
    state = tx.init(params)

    began = time.perf_counter()
    for step in range(1, args.steps + 1):
        chosen = picker.sample(data, 256)
        x = encode([sequence for sequence, _ in chosen])
        y = jnp.array([label for _, label in chosen], jnp.float32)
        params, state, loss = update(params, state, x, y)
        if step % 40 == 0:
            print(f"step {step}: loss {float(loss):.4f}")
    jax.block_until_ready(params)
    print(f"trained {args.steps} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
