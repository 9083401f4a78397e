"""Delivery times of parcel rounds; each of the depot's rounds has its own number of stops."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--multiple", type=int, default=1)
args = parser.parse_args()
ROUNDS = [23, 31, 38, 46, 57, 72, 85, 91, 118, 139, 152, 181]


def predict(params, stops, mask):
    hidden = jax.nn.relu(stops @ params["w1"] + params["b1"])
    pooled = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return (pooled @ params["w2"])[:, 0]


@jax.jit
def train_step(params, stops, mask, minutes):
    def loss_fn(p):
        return jnp.mean((predict(p, stops, mask) - minutes) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss


def batches(rng, count):
    for _ in range(count):
        longest = int(rng.choice(ROUNDS))
        padded = -(-longest // args.multiple) * args.multiple
        stops = np.zeros((64, padded, 16), np.float32)
        stops[:, :longest] = rng.standard_normal((64, longest, 16))
        mask = np.zeros((64, padded), np.float32)
        mask[:, :longest] = 1
        yield stops, mask, rng.random(64, dtype=np.float32)


rng = np.random.default_rng(0)
params = {
    "w1": rng.normal(0, 0.2, (16, 128)).astype(np.float32),
    "b1": np.zeros(128, np.float32),
    "w2": rng.normal(0, 0.1, (128, 1)).astype(np.float32),
}
params = jax.tree.map(jnp.asarray, params)
steps = 0
start = time.perf_counter()
for stops, mask, minutes in batches(rng, 100):
    params, loss = train_step(params, stops, mask, minutes)
    steps += 1
print(f"loss {float(loss):.3f}")
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
