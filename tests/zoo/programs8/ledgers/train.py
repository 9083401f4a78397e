"""Flag odd ledger entries with an autoencoder in JAX."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

ROWS, COLUMNS, BATCH = 120_000, 128, 512


def init(key, sizes=(COLUMNS, 256, 32, 256, COLUMNS)):
    keys = jax.random.split(key, len(sizes))
    return [
        (jax.random.normal(k, (a, b)) * (2 / a) ** 0.5, jnp.zeros(b))
        for k, a, b in zip(keys, sizes, sizes[1:])
    ]


def reconstruct(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss_fn(params, x):
    return jnp.mean((reconstruct(params, x) - x) ** 2)


tx = optax.adam(1e-3)


@jax.jit
def update(params, opt_state, table, pick):
    loss, grads = jax.value_and_grad(loss_fn)(params, table[pick])
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", default="host", choices=["host", "device"])
    parser.add_argument("--steps", type=int, default=150)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    table = rng.standard_normal((ROWS, COLUMNS), dtype=np.float32)
    if args.table == "device":
        table = jnp.asarray(table)
    params = init(jax.random.PRNGKey(0))
    opt_state = tx.init(params)
    start = time.perf_counter()
    for step in range(args.steps):
        pick = rng.integers(0, ROWS, BATCH)
        params, opt_state, loss = update(params, opt_state, table, pick)
        if step % 50 == 0:
            print(f"step {step} loss {float(loss):.4f}")
    jax.block_until_ready(params)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
