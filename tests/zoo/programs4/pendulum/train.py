"""Learns the motion of coupled pendulums from noisy tracks."""

import argparse
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state
from model import Dynamics, rollout_loss

DT = 0.05


def simulate(n, horizon, n_pendulums, rng):
    q = rng.uniform(-1.5, 1.5, (n, n_pendulums))
    v = rng.normal(0, 0.5, (n, n_pendulums))
    states = [np.concatenate([q, v], 1)]
    for _ in range(horizon):
        pull = np.roll(q, 1, 1) + np.roll(q, -1, 1) - 2 * q
        v = v + DT * (-np.sin(q) + 0.5 * pull)
        q = q + DT * v
        states.append(np.concatenate([q, v], 1))
    return np.stack(states) + rng.normal(0, 0.001, (horizon + 1, n, 2 * n_pendulums))


@partial(jax.jit, donate_argnums=0)
def train_step(state, tracks):
    loss, grads = jax.value_and_grad(
        lambda params: rollout_loss(state.apply_fn, params, tracks[0], tracks[1:], DT)
    )(state.params)
    return state.apply_gradients(grads=grads), loss


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--precision", choices=["double", "single"], default="double")
    p.add_argument("--steps", type=int, default=150)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--horizon", type=int, default=4)
    args = p.parse_args()
    jax.config.update("jax_enable_x64", args.precision == "double")

    tracks = simulate(4096, args.horizon, 8, np.random.default_rng(1))
    model = Dynamics()
    params = model.init(jax.random.key(0), jnp.asarray(tracks[0, :1]))
    params = jax.tree.map(lambda x: x.astype(jnp.asarray(tracks[0, 0]).dtype), params)
    schedule = optax.cosine_decay_schedule(2e-3, args.steps)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))
    state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=tx)
    rng = np.random.default_rng(2)
    t0 = time.perf_counter()
    for step in range(args.steps):
        batch = tracks[:, rng.integers(0, tracks.shape[1], args.batch)]
        state, loss = train_step(state, batch)
        if step % 30 == 0:
            print(f"step {step} loss {float(loss):.6f}")
    jax.block_until_ready(state.params)
    print(f"trained {args.steps} steps in {time.perf_counter() - t0:.3f} s")


if __name__ == "__main__":
    main()
