"""Question 18, JAX: guess the next syllable. The verses become longer as the lesson goes on."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

SYLLABLES, WIDTH, ROWS, LONGEST = 200, 96, 64, 64


def parameters(key):
    keys = jax.random.split(key, 4)
    return {
        "embed": jax.random.normal(keys[0], (SYLLABLES, WIDTH)) * 0.1,
        "near": jax.random.normal(keys[1], (3 * WIDTH, WIDTH)) * 0.05,
        "mix": jax.random.normal(keys[2], (WIDTH, WIDTH)) * 0.1,
        "out": jax.random.normal(keys[3], (WIDTH, SYLLABLES)) * 0.1,
    }


def loss_of(params, verses, known):
    x = params["embed"][verses[:, :-1]]
    before = jnp.pad(x, ((0, 0), (2, 0), (0, 0)))
    x = jnp.concatenate([before[:, :-2], before[:, 1:-1], x], axis=2)
    x = jax.nn.gelu(x @ params["near"])
    x = jax.nn.gelu(x @ params["mix"])
    losses = optax.softmax_cross_entropy_with_integer_labels(x @ params["out"], verses[:, 1:])
    return (losses * known[:, 1:]).sum() / known[:, 1:].sum()


optimizer = optax.adam(1e-3)


@jax.jit
def learn(params, state, verses, known):
    loss, grads = jax.value_and_grad(loss_of)(params, verses, known)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def lesson(rng, length, width):
    verses = np.zeros((ROWS, width), dtype=np.int32)
    verses[:, :length] = rng.integers(1, SYLLABLES, (ROWS, length))
    return verses, (np.arange(width) < length)[None].repeat(ROWS, 0).astype(np.float32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=130)
    parser.add_argument("--width", choices=["verse", "page"], default="verse")
    args = parser.parse_args()
    rng = np.random.default_rng(18)
    params = parameters(jax.random.key(0))
    state = optimizer.init(params)
    start = time.perf_counter()
    for step in range(args.steps):
        length = min(32 + step // 5, LONGEST)
        width = length if args.width == "verse" else LONGEST
        params, state, loss = learn(params, state, *lesson(rng, length, width))
    jax.block_until_ready(params)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
