"""Volumes of barrels: a compiled update in JAX with Equinox and Optax."""

import os
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

STEPS = 80


def loss_of(model, x, y):
    return jnp.mean((jax.vmap(model)(x)[:, 0] - y) ** 2)


def main():
    rng = np.random.default_rng(0)
    staves = [jnp.asarray(rng.standard_normal((2048, 128), dtype=np.float32)) for _ in range(6)]
    volumes = [x[:, :3].sum(axis=1) for x in staves]
    model = eqx.nn.MLP(128, 1, width_size=256, depth=3, key=jax.random.key(0))
    optimizer = optax.adam(1e-3)
    state = optimizer.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def update(model, state, x, y):
        loss, grads = eqx.filter_value_and_grad(loss_of)(model, x, y)
        changes, state = optimizer.update(grads, state)
        return eqx.apply_updates(model, changes), state, loss

    start = time.perf_counter()
    for step in range(STEPS):
        model, state, loss = update(model, state, staves[step % 6], volumes[step % 6])
    loss.block_until_ready()
    seconds = time.perf_counter() - start
    print(f"loss {float(loss):.4f}")
    print(f"trained {STEPS} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
