"""Question 19, JAX: who belongs to which faculty, from who writes to whom."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

PEOPLE, FEATURES, FACULTIES = 1400, 256, 12


def campus():
    rng = np.random.default_rng(19)
    letters = (rng.random((PEOPLE, PEOPLE)) < 0.02).astype(np.float32) + np.eye(PEOPLE)
    letters = np.maximum(letters, letters.T)
    degree = letters.sum(axis=1) ** -0.5
    adjacency = (degree[:, None] * letters * degree).astype(np.float32)
    people = rng.normal(size=(PEOPLE, FEATURES)).astype(np.float32)
    return jnp.asarray(adjacency), jnp.asarray(people), rng.integers(0, FACULTIES, PEOPLE)


@jax.jit
def spread(adjacency, people):
    """Let each person's features reach friends of friends of friends of friends."""
    for _ in range(4):
        people = adjacency @ people
    return people


def logits(params, people):
    hidden = jax.nn.relu(people @ params["first"])
    hidden = jax.nn.relu(hidden @ params["second"])
    return hidden @ params["last"]


optimizer = optax.sgd(0.1, momentum=0.9)


@jax.jit
def fit(params, state, people, faculties):
    def loss_of(params):
        return optax.softmax_cross_entropy_with_integer_labels(
            logits(params, people), faculties
        ).mean()

    loss, grads = jax.value_and_grad(loss_of)(params)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--spread-once", action="store_true")
    args = parser.parse_args()
    adjacency, people, faculties = campus()
    keys = jax.random.split(jax.random.key(19), 3)
    params = {
        "first": jax.random.normal(keys[0], (FEATURES, 320)) * 0.06,
        "second": jax.random.normal(keys[1], (320, 128)) * 0.06,
        "last": jax.random.normal(keys[2], (128, FACULTIES)) * 0.1,
    }
    state = optimizer.init(params)
    start = time.perf_counter()
    features = spread(adjacency, people)
    for _ in range(args.steps):
        if not args.spread_once:
            features = spread(adjacency, people)
        params, state, loss = fit(params, state, features, faculties)
    jax.block_until_ready(params)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
