"""Identifies rocks by their spectra, in flax and optax."""

import argparse
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

BANDS = 256
ROCKS = 20


class RockNet(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        for _ in range(3):
            x = nn.relu(nn.Dense(self.width)(x))
        return nn.Dense(ROCKS)(x)


model = RockNet(width=640)
optimizer = optax.sgd(0.02, momentum=0.9)


def loss_fn(params, x, y):
    scores = model.apply(params, x)
    return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()


@jax.jit
def train_step(params, state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--batch-size", type=int, default=512)
    args = parser.parse_args()

    rng = np.random.default_rng(240)
    spectra = rng.standard_normal((8192, BANDS), dtype=np.float32)
    rocks = (spectra @ rng.standard_normal((BANDS, ROCKS))).argmax(axis=1).astype(np.int32)
    spectra, rocks = jnp.asarray(spectra), jnp.asarray(rocks)
    params = model.init(jax.random.key(240), spectra[:1])
    state = optimizer.init(params)

    started = time.perf_counter()
    for step in range(1, args.steps + 1):
        rows = rng.integers(len(spectra), size=args.batch_size)
        params, state, loss = train_step(params, state, spectra[rows], rocks[rows])
        if step % 30 == 0:
            print(f"step {step}: loss {float(loss):.4f}")
    jax.block_until_ready(params)
    print(f"trained {args.steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
