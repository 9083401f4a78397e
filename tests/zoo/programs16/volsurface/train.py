import os
import time
from dataclasses import dataclass

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from model import Surface


@dataclass(frozen=True)
class Config:
    quotes: int = 40000
    inputs: int = 20
    width: int = 320
    depth: int = 4
    batch_size: int = 512
    steps: int = 160


def make_quotes(cfg: Config):
    rng = np.random.default_rng(12)
    x = rng.standard_normal((cfg.quotes, cfg.inputs), dtype=np.float32)
    y = 0.2 + 0.05 * np.tanh(x[:, 0] ** 2 + x[:, 1])
    return x, y.astype(np.float32), rng


def main(cfg: Config):
    x, y, rng = make_quotes(cfg)
    model = Surface(cfg.inputs, cfg.width, cfg.depth, jax.random.PRNGKey(0))
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    opt_state = optimizer.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def train_step(model, opt_state, x, y):
        loss, grads = eqx.filter_value_and_grad(lambda m: jnp.square(jax.vmap(m)(x) - y).mean())(
            model
        )
        updates, opt_state = optimizer.update(grads, opt_state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), opt_state, loss

    started = time.perf_counter()
    for step in range(cfg.steps):
        index = rng.integers(0, cfg.quotes, size=cfg.batch_size)
        model, opt_state, loss = train_step(model, opt_state, x[index], y[index])
        if step % 40 == 39:
            print(f"step {step + 1}: loss {float(loss):.6f}")
    jax.block_until_ready(loss)
    print(f"trained {cfg.steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main(Config())
