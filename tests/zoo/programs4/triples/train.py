import argparse
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from kg import Corruptor, FastCorruptor, make_graph


def init(key, n_entities, n_relations, dim):
    k1, k2, k3 = jax.random.split(key, 3)
    return {
        "entity": 0.1 * jax.random.normal(k1, (n_entities, dim)),
        "relation": 0.1 * jax.random.normal(k2, (n_relations, dim)),
        "mix": jnp.eye(dim) + 0.01 * jax.random.normal(k3, (dim, dim)),
    }


def score(params, h, r, t):
    left = (params["entity"][h] * params["relation"][r]) @ params["mix"]
    return jnp.einsum("bd,bkd->bk", left, params["entity"][t])


def loss_fn(params, batch, negatives):
    h, r, t = batch[:, 0], batch[:, 1], batch[:, 2]
    positive = score(params, h, r, t[:, None])
    negative = score(params, h, r, negatives)
    weight = jax.lax.stop_gradient(jax.nn.softmax(negative, axis=1))
    return -(
        jax.nn.log_sigmoid(positive).mean() + (weight * jax.nn.log_sigmoid(-negative)).sum(1).mean()
    )


@functools.partial(jax.jit, static_argnames="optimizer")
def update(params, state, batch, negatives, optimizer):
    loss, grads = jax.value_and_grad(loss_fn)(params, batch, negatives)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--batch", type=int, default=384)
    parser.add_argument("--negatives", type=int, default=64)
    parser.add_argument("--entities", type=int, default=3000)
    parser.add_argument("--dim", type=int, default=96)
    parser.add_argument("--corrupt", choices=["filtered", "filtered-np"], default="filtered")
    args = parser.parse_args()

    triples = make_graph(args.entities, 12, 40000, seed=3)
    corrupt_class = Corruptor if args.corrupt == "filtered" else FastCorruptor
    corrupt = corrupt_class(triples, args.entities, args.negatives)
    params = init(jax.random.key(0), args.entities, 12, args.dim)
    optimizer = optax.adam(3e-3)
    state = optimizer.init(params)
    rng = np.random.default_rng(0)
    losses = []
    start = time.perf_counter()
    for step in range(args.steps):
        batch = triples[rng.integers(0, len(triples), args.batch)]
        negatives = corrupt(batch)
        params, state, loss = update(params, state, batch, negatives, optimizer)
        if step % 25 == 0:
            losses.append(float(loss))
            print(f"step {step}: loss {losses[-1]:.4f}")
    jax.block_until_ready(params)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
