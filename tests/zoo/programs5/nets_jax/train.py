"""Fishing nets as graphs: which knots break? flax and optax, padded to one size."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn


class KnotNet(nn.Module):
    @nn.compact
    def __call__(self, nodes, senders, receivers):
        h = nn.Dense(96)(nodes)
        for _ in range(3):
            m = nn.relu(nn.Dense(96)(jnp.concatenate([h[senders], h[receivers]], -1)))
            h = h + nn.relu(nn.Dense(96)(jax.ops.segment_sum(m, receivers, len(h))))
        return nn.Dense(1)(h)[:, 0]


def nets(n, rng):
    for _ in range(n):
        nodes = rng.normal(0, 1, (600, 8)).astype(np.float32)
        senders, receivers = rng.integers(600, size=(2, 2400))
        load = np.bincount(receivers, nodes[senders, 0], 600)
        yield nodes, senders, receivers, (load > 1).astype(np.float32)


def main():
    rng = np.random.default_rng(0)
    data = list(nets(40, rng))
    model, optimizer = KnotNet(), optax.adam(1e-3)
    params = model.init(jax.random.key(0), *data[0][:3])
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, nodes, senders, receivers, broken):
        def loss_of(params):
            scores = model.apply(params, nodes, senders, receivers)
            return optax.sigmoid_binary_cross_entropy(scores, broken).mean()

        loss, grads = jax.value_and_grad(loss_of)(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, loss

    start, losses = time.perf_counter(), []
    for number in range(300):
        params, state, loss = step(params, state, *data[number % len(data)])
        losses.append(loss)
        if number % 100 == 99:
            print(f"step {number}: {float(jnp.stack(losses[-100:]).mean()):.4f}")
    print(f"trained 300 steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
