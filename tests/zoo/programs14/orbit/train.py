"""Learn the motion of two bodies: a residual network in JAX with optax."""

import os
import time
from typing import NamedTuple

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp
import numpy as np
import optax

BATCH, WIDTH, DEPTH, STEPS = 256, 352, 4, 360


class State(NamedTuple):
    params: dict
    opt: optax.OptState


def init_params(key):
    keys = jax.random.split(key, DEPTH + 2)
    scale = 1 / np.sqrt(WIDTH)
    return {
        "enter": jax.random.normal(keys[0], (8, WIDTH)) * 0.3,
        "hidden": [jax.random.normal(k, (WIDTH, WIDTH)) * scale for k in keys[1:-1]],
        "leave": jax.random.normal(keys[-1], (WIDTH, 8)) * scale,
    }


def apply(params, x):
    h = jnp.tanh(x @ params["enter"])
    for w in params["hidden"]:
        h = h + jnp.tanh(h @ w)
    return x + h @ params["leave"]


def loss_fn(params, x, y):
    return jnp.mean((apply(params, x) - y) ** 2)


schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 20, STEPS)
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))


@jax.jit
def train_step(state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(state.params, x, y)
    updates, opt = optimizer.update(grads, state.opt, state.params)
    return State(optax.apply_updates(state.params, updates), opt), loss


evaluate = jax.jit(loss_fn)


def motions(count, seed):
    rng = np.random.default_rng(seed)
    place = rng.standard_normal((count, 4), dtype=np.float32)
    speed = rng.standard_normal((count, 4), dtype=np.float32)
    pull = place[:, [2, 3, 0, 1]] - place
    pull /= 1 + (pull * pull).sum(1, keepdims=True)
    after = np.concatenate([place + 0.1 * speed, speed + 0.1 * pull], 1)
    return np.concatenate([place, speed], 1), after


def main():
    x, y = motions(8192, 0)
    test = motions(1024, 1)
    params = init_params(jax.random.key(0))
    state = State(params, optimizer.init(params))
    order = np.random.default_rng(2)
    start = time.perf_counter()
    for step in range(1, STEPS + 1):
        picked = order.integers(0, len(x), BATCH)
        state, loss = train_step(state, x[picked], y[picked])
        if step % 50 == 0:
            print(f"step {step} loss {loss:.5f} test {evaluate(state.params, *test):.5f}")
    jax.block_until_ready(state)
    print(f"trained {STEPS} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
