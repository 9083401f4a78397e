"""Where a planet will be: a multilayer perceptron in JAX."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

STEPS, BATCH = 300, 1024
SIZES = [6, 384, 384, 384, 3]


def make_orbits(rng, count):
    radius = rng.uniform(0.5, 2.0, (count, 1))
    angle, tilt, ahead = rng.uniform(0, 6.28, (3, count, 1))

    def place(a):
        flat = [
            radius * np.cos(a),
            radius * np.sin(a) * np.cos(tilt),
            radius * np.sin(a) * np.sin(tilt),
        ]
        return np.concatenate(flat, 1)

    now, later = place(angle), place(angle + 0.2 * ahead / radius**1.5)
    features = np.concatenate([now, radius, tilt, ahead], 1)
    return features.astype(np.float32), later.astype(np.float32)


def initialize(key):
    params = []
    for inputs, outputs in zip(SIZES, SIZES[1:]):
        key, now = jax.random.split(key)
        weight = jax.random.normal(now, (inputs, outputs)) * np.sqrt(2 / inputs)
        params.append((weight, jnp.zeros(outputs)))
    return params


def predict(params, x):
    for weight, bias in params[:-1]:
        x = jax.nn.gelu(x @ weight + bias)
    weight, bias = params[-1]
    return x @ weight + bias


def main():
    features, targets = make_orbits(np.random.default_rng(0), 60_000)
    params = initialize(jax.random.PRNGKey(0))
    schedule = optax.cosine_decay_schedule(1e-3, STEPS)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
    state = optimizer.init(params)

    @jax.jit
    def train_step(params, state, x, y):
        def loss_fn(params):
            return jnp.square(predict(params, x) - y).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    rng = np.random.default_rng(1)
    begin = time.perf_counter()
    for step in range(STEPS):
        rows = rng.integers(0, len(features), BATCH)
        params, state, loss = train_step(params, state, features[rows], targets[rows])
        if step % 50 == 49:
            print(f"step {step + 1}: loss {float(loss):.5f}")
    jax.block_until_ready(params)
    print(f"trained {STEPS} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
