"""Energies of small made-up molecules from distances between atoms; jax and optax."""

import argparse
import os
import time

os.environ.setdefault("NPROC", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np
import optax

ATOMS, BASIS = 12, 48


def molecules(count, rng):
    places = rng.normal(0, 1.5, (count, ATOMS, 3)).astype(np.float32)
    distance = np.linalg.norm(places[:, :, None] - places[:, None], axis=-1)
    upper = np.triu_indices(ATOMS, 1)
    r = distance[:, upper[0], upper[1]] + 0.5
    return places, (4 * (r**-4 - r**-2)).sum(1).astype(np.float32)


def turn_and_expand(places, rng):
    """Turn every molecule at random, shake it a little, and expand its distances."""
    q, _ = np.linalg.qr(rng.normal(size=(len(places), 3, 3)))
    places = np.einsum("nai,nij->naj", places, q)
    places = places + rng.normal(0, 0.01, places.shape)
    distance = np.linalg.norm(places[:, :, None] - places[:, None], axis=-1)
    inside = 0.5 * (np.cos(np.pi * np.minimum(distance / 6, 1.0)) + 1.0)
    centres = np.linspace(0, 6, BASIS)
    basis = np.exp(-4 * (distance[..., None] - centres) ** 2) * inside[..., None]
    return basis.astype(np.float32)


def init(key, width=32):
    keys = jax.random.split(key, 4)
    sizes = [(BASIS, width), (width, width), (width, width), (width, 1)]
    return [
        {"w": jax.random.normal(k, s) / s[0] ** 0.5, "b": jnp.zeros(s[1])}
        for k, s in zip(keys, sizes, strict=True)
    ]


def predict(params, basis):
    x = basis
    for layer in params[:2]:
        x = jax.nn.silu(x @ layer["w"] + layer["b"])
    x = x.sum(2)
    x = jax.nn.silu(x @ params[2]["w"] + params[2]["b"])
    return (x @ params[3]["w"] + params[3]["b"])[..., 0].sum(1)


def loss_fn(params, basis, energy):
    return jnp.mean((predict(params, basis) - energy) ** 2)


optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))


@jax.jit
def train_step(params, state, basis, energy):
    loss, grads = jax.value_and_grad(loss_fn)(params, basis, energy)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--report", choices=["running", "epoch"], default="running")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=160)
    args = parser.parse_args()
    rng = np.random.default_rng(64)
    places, energy = molecules(6400, rng)
    energy = (energy - energy.mean()) / energy.std()
    params = init(jax.random.key(64))
    state = optimizer.init(params)

    steps, start = 0, time.perf_counter()
    smoothed = None
    for epoch in range(args.epochs):
        order = rng.permutation(len(places))
        losses = []
        for first in range(0, len(order), args.batch_size):
            rows = order[first : first + args.batch_size]
            basis = turn_and_expand(places[rows], rng)
            params, state, loss = train_step(params, state, basis, energy[rows])
            if args.report == "running":
                value = float(loss)
                smoothed = value if smoothed is None else 0.98 * smoothed + 0.02 * value
            losses.append(loss)
            steps += 1
        print(f"epoch {epoch}: loss {float(jnp.stack(losses).mean()):.4f}")
    seconds = time.perf_counter() - start
    np.savez("params.npz", *jax.tree.leaves(params))
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
