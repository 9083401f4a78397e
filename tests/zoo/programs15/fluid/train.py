# surrogate for 2D vorticity fields, flax linen + optax
import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Surrogate(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(3):
            x = nn.gelu(nn.Dense(1024)(x))
        return nn.Dense(256)(x)


model = Surrogate()
fields = np.random.default_rng(24).standard_normal((3000, 256)).astype(np.float32)
after = np.roll(fields, 1, axis=1) * 0.9
params = model.init(jax.random.PRNGKey(24), jnp.ones((1, 256)))
tx = optax.adam(1e-3)
opt_state = tx.init(params)


@jax.jit
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((model.apply(p, x) - y) ** 2))(params)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


rng = np.random.default_rng(0)
steps = 240
start = time.perf_counter()
for step in range(steps):
    i = rng.integers(0, len(fields), 128)
    params, opt_state, loss = train_step(params, opt_state, fields[i], after[i])
    if step % 40 == 39:
        print(step, float(loss))
jax.block_until_ready(params)
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
