"""Delivery times of parcel rounds; a round has between 20 and 200 stops."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

parser = argparse.ArgumentParser()
parser.add_argument("--multiple", type=int, default=1)
args = parser.parse_args()
tx = optax.adam(1e-3)


def predict(params, stops, mask):
    hidden = jax.nn.relu(stops @ params["w1"] + params["b1"])
    hidden = jax.nn.relu(hidden @ params["w2"] + params["b2"])
    pooled = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return (pooled @ params["w3"])[:, 0]


@jax.jit
def train_step(params, state, stops, mask, minutes):
    def loss_fn(p):
        return jnp.mean((predict(p, stops, mask) - minutes) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, state = tx.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def batches(rng, count):
    for _ in range(count):
        longest = int(rng.integers(20, 201))
        padded = -(-longest // args.multiple) * args.multiple
        stops = np.zeros((64, padded, 16), np.float32)
        stops[:, :longest] = rng.standard_normal((64, longest, 16))
        mask = np.zeros((64, padded), np.float32)
        mask[:, :longest] = 1
        yield stops, mask, rng.random(64, dtype=np.float32)


rng = np.random.default_rng(0)
params = {
    "w1": rng.normal(0, 0.2, (16, 128)).astype(np.float32), "b1": np.zeros(128, np.float32),
    "w2": rng.normal(0, 0.1, (128, 128)).astype(np.float32), "b2": np.zeros(128, np.float32),
    "w3": rng.normal(0, 0.1, (128, 1)).astype(np.float32),
}  # fmt: skip
params = jax.tree.map(jnp.asarray, params)
state = tx.init(params)
steps = 0
start = time.perf_counter()
for stops, mask, minutes in batches(rng, 100):
    params, state, loss = train_step(params, state, stops, mask, minutes)
    steps += 1
print(f"loss {float(loss):.3f}")
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
