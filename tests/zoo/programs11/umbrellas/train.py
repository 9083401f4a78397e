import time
from functools import partial

import jax
import jax.numpy as jnp
import optax

from net import init, logits
from rain import batches, make_days

STEPS, BATCH, HOURS, SENSORS, HIDDEN = 100, 256, 16, 32, 160
TX = optax.adam(1e-3)


def loss_fn(params, x, y):
    return jnp.mean(optax.sigmoid_binary_cross_entropy(logits(params, x), y))


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = TX.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def main():
    x, y = make_days(4096, HOURS, SENSORS)
    params = init(jax.random.PRNGKey(26), SENSORS, HIDDEN)
    state = TX.init(params)
    losses = []
    start = time.perf_counter()
    for bx, by in batches(x, y, BATCH, STEPS):
        params, state, loss = train_step(params, state, bx, by)
        losses.append(loss)
    jax.block_until_ready(params)
    took = time.perf_counter() - start
    print(f"first {float(losses[0]):.3f} last {float(losses[-1]):.3f}")
    print(f"trained {STEPS} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
