import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from model import AccentNet


def utterances(n, frames, bands, rng):
    accent = rng.integers(6, size=n)
    t = np.arange(frames)[None, :, None]
    tune = np.sin(t * (0.1 + 0.05 * accent[:, None, None]) + np.arange(bands))
    return (tune + rng.normal(0, 1, (n, frames, bands))).astype(np.float32), accent


class Trainer:
    def __init__(self, jit_update):
        self.model = AccentNet()
        self.optimizer = optax.chain(
            optax.clip_by_global_norm(1.0),
            optax.adamw(optax.cosine_decay_schedule(1e-3, 400), weight_decay=1e-4),
        )
        self.params = self.model.init(jax.random.key(0), jnp.zeros((1, 100, 24)))
        self.state = self.optimizer.init(self.params)
        self.gradient = jax.jit(jax.value_and_grad(self.loss))
        self.apply = jax.jit(self.update) if jit_update else self.update

    def loss(self, params, x, y):
        scores = self.model.apply(params, x)
        return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()

    def update(self, params, state, grads):
        updates, state = self.optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    def step(self, x, y):
        loss, grads = self.gradient(self.params, x, y)
        self.params, self.state = self.apply(self.params, self.state, grads)
        return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--jit-update", action="store_true")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    x, y = utterances(1200, 100, 24, rng)
    trainer = Trainer(args.jit_update)
    start = time.perf_counter()
    for step in range(args.steps):
        pick = rng.integers(len(x), size=12)
        loss = trainer.step(x[pick], y[pick])
        if step % 50 == 0:
            print(f"step {step}: {float(loss):.4f}")
    jax.block_until_ready(trainer.params)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
