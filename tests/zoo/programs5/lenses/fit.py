import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from rays import trace


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--precision", choices=["double", "single"], default="double")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", args.precision == "double")
    rays, leaving = trace(60000)
    rays, leaving = jnp.asarray(rays), jnp.asarray(leaving)
    surrogate = eqx.nn.MLP(6, 3, 256, 4, jax.nn.gelu, key=jax.random.key(0))
    optimizer = optax.adam(5e-4)
    state = optimizer.init(eqx.filter(surrogate, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(surrogate, state, x, y):
        def loss_of(surrogate):
            return jnp.mean((jax.vmap(surrogate)(x) - y) ** 2)

        loss, grads = eqx.filter_value_and_grad(loss_of)(surrogate)
        updates, state = optimizer.update(grads, state)
        return eqx.apply_updates(surrogate, updates), state, loss

    rng = np.random.default_rng(1)
    start = time.perf_counter()
    for number in range(args.steps):
        pick = rng.integers(len(rays), size=args.batch)
        surrogate, state, loss = step(surrogate, state, rays[pick], leaving[pick])
        if number % 50 == 0:
            print(f"step {number}: {float(loss):.3e}")
    jax.block_until_ready(loss)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
