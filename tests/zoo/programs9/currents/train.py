"""Sea currents, jitted, with the old state given back."""

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

tx = optax.adamw(1e-3)


def loss_fn(params, x, y):
    for name in ("a", "b", "c"):
        x = jax.nn.gelu(x @ params[name])
    return jnp.mean((x @ params["out"] - y) ** 2)


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = tx.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def main():
    rng = np.random.default_rng(0)
    shapes = {"a": (128, 512), "b": (512, 512), "c": (512, 512), "out": (512, 2)}
    params = {
        name: jnp.asarray(rng.normal(0, shape[0] ** -0.5, shape), jnp.float32)
        for name, shape in shapes.items()
    }
    state = tx.init(params)
    xs = jnp.asarray(rng.standard_normal((12, 384, 128)), jnp.float32)
    ys = jnp.asarray(rng.standard_normal((12, 384, 2)), jnp.float32)
    data = [(xs[i], ys[i]) for i in range(12)]
    steps = 200
    start = time.perf_counter()
    for step in range(steps):
        params, state, loss = train_step(params, state, *data[step % 12])
        if step % 50 == 49:
            print(f"step {step + 1}: {float(loss):.4f}")
    jax.block_until_ready(params)
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
