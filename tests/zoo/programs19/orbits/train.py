"""Where will it be next? A residual network of orbits, with Flax."""

import os
import time

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

STEPS, BATCH, PAST = 400, 256, 32


class Residual(nn.Module):
    width: int = 320

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(self.width)(x)
        for _ in range(4):
            x = x + nn.Dense(self.width)(nn.swish(nn.Dense(self.width)(x)))
        return nn.Dense(2)(x)


def orbits(count):
    rng = np.random.default_rng(140)
    phase, rate = rng.uniform(0, 6, (count, 1)), rng.uniform(0.05, 0.2, (count, 1))
    angle = phase + rate * np.arange(PAST + 1)
    places = np.stack([np.cos(angle), 0.7 * np.sin(angle)], axis=-1).astype(np.float32)
    return places[:, :-1].reshape(count, -1), places[:, -1]


def main():
    past, following = map(jnp.asarray, orbits(BATCH * 16))
    past, following = past.reshape(16, BATCH, -1), following.reshape(16, BATCH, -1)
    model = Residual()
    params = model.init(jax.random.PRNGKey(140), past[0])
    optimizer = optax.adam(1e-3)
    state = optimizer.init(params)

    @jax.jit
    def update(params, state, past, following):
        def objective(params):
            return jnp.mean((model.apply(params, past) - following) ** 2)

        loss, grads = jax.value_and_grad(objective)(params)
        changes, state = optimizer.update(grads, state)
        return optax.apply_updates(params, changes), state, loss

    jax.block_until_ready(update(params, state, past[0], following[0]))
    begin = time.perf_counter()
    for step in range(STEPS):
        params, state, loss = update(params, state, past[step % 16], following[step % 16])
    loss.block_until_ready()
    seconds = time.perf_counter() - begin
    print(f"loss {float(loss):.5f}")
    print(f"trained {STEPS} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
