"""Map meadow plants from drone patches: flax and optax, one jitted step."""

import time
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

CLASSES, BATCH, STEPS = 6, 32, 100


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (24, 48):
            x = nn.relu(nn.Conv(width, (3, 3))(x))
            x = nn.avg_pool(x, (2, 2), strides=(2, 2))
        x = nn.relu(nn.Conv(64, (3, 3))(x))
        return nn.Dense(CLASSES)(jnp.mean(x, axis=(1, 2)))


@partial(jax.jit, donate_argnums=0)
def train_step(state, x, y):
    def loss_fn(params):
        logits = state.apply_fn({"params": params}, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def main():
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, 1024)
    x = rng.normal(0, 1, (1024, 32, 32, 3)).astype(np.float32)
    x[..., 0] += y[:, None, None] * 0.3
    model = Net()
    params = model.init(jax.random.PRNGKey(0), x[:1])["params"]
    schedule = optax.cosine_decay_schedule(1e-3, STEPS)
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adamw(schedule))
    start = time.perf_counter()
    for step in range(STEPS):
        pick = rng.integers(0, len(x), BATCH)
        state, loss = train_step(state, x[pick], y[pick])
        if step % 50 == 49:
            print(f"step {step + 1} loss {float(loss):.4f}")
    jax.block_until_ready(state.params)
    print(f"trained {STEPS} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
