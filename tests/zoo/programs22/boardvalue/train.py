import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

SQUARES = 64
PIECES = 13
WIDTH = 128
DEPTH = 3
BATCH = 32
STEPS = 100


def positions(count, seed):
    """Boards as piece numbers per square, and the outcome of the game."""
    rng = np.random.default_rng(seed)
    boards = rng.integers(0, PIECES, size=(count, SQUARES)).astype(np.int32)
    worth = rng.normal(size=PIECES)
    outcome = np.tanh(worth[boards].sum(axis=1) / 8 + 0.1 * rng.normal(size=count))
    return boards, outcome.astype(np.float32)


def init(key):
    keys = iter(jax.random.split(key, 4 + 4 * DEPTH))

    def dense(inputs, outputs):
        return jax.random.normal(next(keys), (inputs, outputs)) * inputs**-0.5

    return {
        "pieces": 0.1 * jax.random.normal(next(keys), (PIECES, WIDTH)),
        "squares": 0.1 * jax.random.normal(next(keys), (SQUARES, WIDTH)),
        "blocks": [
            {
                "across": dense(SQUARES, SQUARES),
                "inner": dense(WIDTH, 2 * WIDTH),
                "outer": dense(2 * WIDTH, WIDTH),
            }
            for _ in range(DEPTH)
        ],
        "value": dense(WIDTH, 1),
    }


def normalise(x):
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6)


def predict(params, boards):
    x = params["pieces"][boards] + params["squares"]
    for block in params["blocks"]:
        x = x + jnp.einsum("bsw,st->btw", normalise(x), block["across"])
        x = x + jax.nn.relu(normalise(x) @ block["inner"]) @ block["outer"]
    return jnp.tanh(normalise(x.mean(axis=1)) @ params["value"])[:, 0]


def loss_fn(params, boards, outcome):
    return jnp.mean((predict(params, boards) - outcome) ** 2)


@partial(jax.jit, static_argnums=0, donate_argnums=(1, 2))
def train_step(optimizer, params, state, boards, outcome):
    loss, grads = jax.value_and_grad(loss_fn)(params, boards, outcome)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def main():
    boards, outcome = positions(8192, seed=30)
    params = init(jax.random.key(30))
    optimizer = optax.adamw(1e-3)
    state = optimizer.init(params)
    rng = np.random.default_rng(31)
    start = time.perf_counter()
    for step in range(1, STEPS + 1):
        chosen = rng.integers(len(boards), size=BATCH)
        params, state, loss = train_step(optimizer, params, state, boards[chosen], outcome[chosen])
        if step % 40 == 0:
            print(f"step {step}: loss {loss:.4f}")
    jax.block_until_ready(params)
    print(f"trained {STEPS} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
