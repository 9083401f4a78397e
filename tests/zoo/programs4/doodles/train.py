import argparse
import dataclasses
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from vae import VAE, elbo


@dataclasses.dataclass
class Anneal:
    """The weight of the KL term, in stairs."""

    warmup: int
    stairs: int
    top: float = 1.0

    def __call__(self, step):
        return self.top * min(step * self.stairs // self.warmup, self.stairs) / self.stairs


def doodles(n, size, rng):
    y, x = np.mgrid[:size, :size] / size
    c = rng.uniform(0.2, 0.8, (n, 2, 1, 1))
    r = rng.uniform(0.1, 0.3, (n, 1, 1))
    d = np.hypot(y - c[:, 0], x - c[:, 1])
    return (np.abs(d - r) < 0.05).reshape(n, -1).astype(np.float32)


def make_step(optimizer):
    @eqx.filter_jit
    def step(model, state, images, beta, key):
        loss, grads = eqx.filter_value_and_grad(elbo)(model, images, beta, key)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, updates), state, loss

    return step


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=192)
    parser.add_argument("--stairs", type=int, default=8)
    parser.add_argument("--beta-array", action="store_true")
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    data = doodles(4000, 24, rng)
    key, init_key = jax.random.split(jax.random.key(5))
    model = VAE(24 * 24, 16, key=init_key)
    optimizer = optax.adamw(1e-3)
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    step_fn = make_step(optimizer)
    anneal = Anneal(warmup=args.steps, stairs=args.stairs)
    begin = time.perf_counter()
    for step in range(args.steps):
        key, sub = jax.random.split(key)
        beta = anneal(step)
        if args.beta_array:
            beta = jnp.asarray(beta)
        batch = data[rng.integers(0, len(data), args.batch)]
        model, state, loss = step_fn(model, state, batch, beta, sub)
        if step % 40 == 39:
            print(f"step {step + 1}: loss {float(loss):.3f}")
    jax.block_until_ready(loss)
    print(f"trained {args.steps} steps in {time.perf_counter() - begin:.3f} s")
