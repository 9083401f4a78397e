import argparse
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState


class SherdNet(nn.Module):
    classes: int = 9

    @nn.compact
    def __call__(self, x):
        for width in (160, 160):
            residual = nn.Dense(width)(x)
            x = nn.gelu(nn.LayerNorm()(nn.Dense(width)(x))) + residual
        return nn.Dense(self.classes)(x)


def create_state(seed, inputs):
    model = SherdNet()
    params = model.init(jax.random.key(seed), jnp.zeros((1, inputs)))["params"]
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    return TrainState.create(apply_fn=model.apply, params=params, tx=tx)


def train_step(state, batch):
    def loss_fn(params):
        logits = state.apply_fn({"params": params}, batch["profile"])
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["period"])
        return losses.mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def sherds(steps, size, seed=19):
    rng = np.random.default_rng(seed)
    profiles = rng.standard_normal((2000, 80)).astype(np.float32)
    periods = rng.integers(0, 9, 2000)
    for _ in range(steps):
        rows = rng.integers(0, 2000, size)
        yield {"profile": profiles[rows], "period": periods[rows]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=70)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--jit", action="store_true")
    args = parser.parse_args()
    step = jax.jit(train_step) if args.jit else train_step
    state = create_state(0, 80)
    start = time.perf_counter()
    for i, batch in enumerate(sherds(args.steps, args.batch_size)):
        state, loss = step(state, batch)
        if i % 20 == 0:
            print(f"step {i} loss {loss:.3f}")
    jax.block_until_ready(state.params)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
