import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

SIZES = [64, 512, 512, 8]
STEPS = 200


def init(key):
    keys = jax.random.split(key, len(SIZES) - 1)
    return [
        {"w": jax.random.normal(k, (n, m)) / n**0.5, "b": jnp.zeros(m)}
        for k, n, m in zip(keys, SIZES[:-1], SIZES[1:])
    ]


def loss_fn(params, x, y):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    logits = x @ params[-1]["w"] + params[-1]["b"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


optimizer = optax.adam(1e-3)


@jax.jit
def update(params, state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


rng = np.random.default_rng(0)
data = rng.normal(size=(STEPS, 512, 64)).astype(np.float32)
labels = data[:, :, :8].argmax(2)
params = init(jax.random.PRNGKey(0))
state = optimizer.init(params)
start = time.perf_counter()
for step in range(STEPS):
    params, state, loss = update(params, state, data[step], labels[step])
    if step % 50 == 0:
        print(f"step {step}: loss {float(loss):.3f}")
jax.block_until_ready(params)
print(f"trained {STEPS} steps in {time.perf_counter() - start:.3f} s")
