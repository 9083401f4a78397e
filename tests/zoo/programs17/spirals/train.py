"""Physics surrogate with equinox: spring chain, state to acceleration."""

import argparse
import os
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


def batches(key_seed, n, size=384):
    rng = np.random.default_rng(key_seed)
    states = rng.standard_normal((4096, 128), dtype=np.float32)
    accel = np.roll(states, 1, 1) - 2 * states + np.roll(states, -1, 1)
    for _ in range(n):
        idx = rng.integers(0, 4096, size)
        yield states[idx], accel[idx]


optim = optax.adam(1e-3)


@eqx.filter_value_and_grad
def loss_fn(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


@eqx.filter_jit
def make_step(model, opt_state, x, y):
    loss, grads = loss_fn(model, x, y)
    updates, opt_state = optim.update(grads, opt_state)
    return eqx.apply_updates(model, updates), opt_state, loss


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=150)
    args = ap.parse_args()
    model = eqx.nn.MLP(128, 128, 512, 3, key=jax.random.PRNGKey(0))
    opt_state = optim.init(eqx.filter(model, eqx.is_array))
    start = time.perf_counter()
    for step, (x, y) in enumerate(batches(0, args.steps), 1):
        model, opt_state, loss = make_step(model, opt_state, x, y)
        if step % 50 == 0:
            print(f"step {step}: {loss:.4f}")
    jax.block_until_ready(loss)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
