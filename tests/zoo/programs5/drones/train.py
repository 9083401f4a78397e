import argparse
import os
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp
import numpy as np
import optax
from simulate import Swarm


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(k, (i, o)) * (2 / i) ** 0.5, jnp.zeros(o))
        for k, i, o in zip(keys, sizes[:-1], sizes[1:])
    ]


def policy(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return jax.nn.log_softmax(x @ w + b)


def loss_of(params, seen, done, returns):
    chosen = jnp.take_along_axis(policy(params, seen), done[:, None], 1)[:, 0]
    return -jnp.mean(chosen * returns)


optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))


@jax.jit
def update(params, state, seen, done, returns):
    loss, grads = jax.value_and_grad(loss_of)(params, seen, done, returns)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def train(args):
    swarm = Swarm(100)
    params = init(jax.random.key(0), [12, 192, 192, 5])
    state = optimizer.init(params)
    for step in range(args.steps):
        seen, done, returns = swarm.fly()
        params, state, loss = update(params, state, seen, done, returns)
        if step % args.check_every == 0 and not np.isfinite(float(loss)):
            raise SystemExit(f"step {step}: the loss is {float(loss)}")
        if step % 50 == 0:
            print(f"step {step}: {float(loss):.4f}")
    jax.block_until_ready(params)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--check-every", type=int, default=1)
    args = parser.parse_args()
    start = time.perf_counter()
    train(args)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
