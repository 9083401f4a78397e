"""Discrete autoencoder with a relaxed categorical code; it is cooled while it learns."""

import argparse
import dataclasses
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax


@dataclasses.dataclass(frozen=True)
class Config:
    inputs: int = 256
    width: int = 512
    codes: int = 24
    choices: int = 16
    rate: float = 1e-3
    temperature: float = 1.0


def initialize(key, config):
    sizes = [
        (config.inputs, config.width),
        (config.width, config.codes * config.choices),
        (config.codes * config.choices, config.width),
        (config.width, config.inputs),
    ]
    keys = jax.random.split(key, len(sizes))
    return [
        {"w": jax.random.normal(k, size) / np.sqrt(size[0]), "b": jnp.zeros(size[1])}
        for k, size in zip(keys, sizes)
    ]


def loss_fn(params, key, x, config, temperature):
    h = jax.nn.relu(x @ params[0]["w"] + params[0]["b"])
    logits = (h @ params[1]["w"] + params[1]["b"]).reshape(-1, config.codes, config.choices)
    noisy = (logits + jax.random.gumbel(key, logits.shape)) / temperature
    code = jax.nn.softmax(noisy).reshape(len(x), -1)
    h = jax.nn.relu(code @ params[2]["w"] + params[2]["b"])
    made = h @ params[3]["w"] + params[3]["b"]
    return jnp.square(made - x).mean()


def apply_update(params, state, key, x, config, temperature):
    loss, grads = jax.value_and_grad(loss_fn)(params, key, x, config, temperature)
    updates, state = optax.adam(config.rate).update(grads, state)
    return optax.apply_updates(params, updates), state, loss


@functools.partial(jax.jit, static_argnames="config")
def train_step(params, state, key, x, config):
    return apply_update(params, state, key, x, config, config.temperature)


@functools.partial(jax.jit, static_argnames="config")
def train_step_at(params, state, key, x, temperature, config):
    return apply_update(params, state, key, x, config, temperature)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=168)
    parser.add_argument("--cool-every", type=int, default=24)
    parser.add_argument("--traced-temperature", action="store_true")
    args = parser.parse_args()

    config = Config()
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(12, config.inputs))
    data = np.tanh(rng.normal(size=(4096, 12)) @ basis).astype(np.float32)
    key = jax.random.PRNGKey(0)
    params = initialize(key, config)
    state = optax.adam(config.rate).init(params)

    temperature = 1.0
    begin = time.perf_counter()
    for step in range(args.steps):
        x = data[rng.integers(0, len(data), 512)]
        key, now = jax.random.split(key)
        if args.traced_temperature:
            params, state, loss = train_step_at(params, state, now, x, temperature, config)
        else:
            params, state, loss = train_step(params, state, now, x, config)
        if (step + 1) % args.cool_every == 0:
            temperature = max(0.3, temperature * 0.9)
            if not args.traced_temperature:
                config = dataclasses.replace(config, temperature=temperature)
        if step % 40 == 0:
            print(f"step {step}: loss {float(loss):.4f} at {temperature:.2f}")
    jax.block_until_ready(params)
    print(f"trained {args.steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
