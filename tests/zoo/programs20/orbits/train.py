"""Question 28, JAX: the orbit of a moon, learned by a perceptron."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

SIZES = (64, 768, 768, 3)


def init(key):
    layers = []
    for key, a, b in zip(jax.random.split(key, 3), SIZES, SIZES[1:]):
        layers.append((jax.random.normal(key, (a, b)) * (2 / a) ** 0.5, jnp.zeros(b)))
    return layers


def place(layers, x):
    for weight, bias in layers[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = layers[-1]
    return x @ weight + bias


optimizer = optax.adam(1e-3)


@jax.jit
def step(layers, state, x, y):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((place(p, x) - y) ** 2))(layers)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(layers, updates), state, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=220)
    args = parser.parse_args()
    rng = np.random.default_rng(28)
    seen = rng.normal(size=(10, 512, 64)).astype(np.float32)
    where = np.sin(seen[:, :, :3])
    batches = [(jnp.asarray(x), jnp.asarray(y)) for x, y in zip(seen, where)]
    layers = init(jax.random.key(28))
    state = optimizer.init(layers)
    start = time.perf_counter()
    for number in range(args.steps):
        layers, state, loss = step(layers, state, *batches[number % 10])
    jax.block_until_ready(layers)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
