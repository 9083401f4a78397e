"""Fit a function with JAX and Optax, with a look at all held-out points now and then."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax


def init(rng, sizes):
    return [
        {"w": jnp.asarray(rng.normal(size=(n, m)) / n**0.5, jnp.float32), "b": jnp.zeros(m)}
        for n, m in zip(sizes[:-1], sizes[1:])
    ]


def predict(params, x):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def mse(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


optimizer = optax.adam(1e-3)


@jax.jit
def train_step(params, state, x, y):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


@jax.jit
def eval_step(params, x, y):
    return mse(params, x, y)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--eval-every", type=int, default=10)
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(45_000, 32)).astype(np.float32)
    y = np.sin(x.sum(1, keepdims=True))
    train_x, train_y, test_x, test_y = x[:30_000], y[:30_000], x[30_000:], y[30_000:]
    params = init(rng, [32, 512, 512, 1])
    state = optimizer.init(params)
    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        chosen = rng.integers(0, len(train_x), 512)
        params, state, loss = train_step(params, state, train_x[chosen], train_y[chosen])
        if step % args.eval_every == 0:
            errors = [
                float(eval_step(params, test_x[n : n + 1000], test_y[n : n + 1000]))
                for n in range(0, len(test_x), 1000)
            ]
            print(f"step {step}: loss {float(loss):.3f}, held out {np.mean(errors):.3f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
