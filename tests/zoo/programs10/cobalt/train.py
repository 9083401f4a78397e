"""A classifier of pigments in JAX and optax."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

SIZES = [128, 512, 512, 16]


def init_params(key):
    params = []
    for fan_in, fan_out in zip(SIZES[:-1], SIZES[1:], strict=True):
        key, sub = jax.random.split(key)
        weight = jax.random.normal(sub, (fan_in, fan_out)) * np.sqrt(2 / fan_in)
        params.append({"w": weight, "b": jnp.zeros(fan_out)})
    return params


def predict(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def cross_entropy(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(predict(params, x), y).mean()


optimizer = optax.sgd(0.05, momentum=0.9)


@jax.jit
def apply_updates(params, state, grads):
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state


def make_grad(smoothing):
    def objective(params, x, y):
        penalty = sum(jnp.sum(layer["w"] ** 2) for layer in params)
        return cross_entropy(params, x, y) + smoothing * penalty

    return jax.jit(jax.value_and_grad(objective))


def train(params, spectra, pigments, args):
    rng = np.random.default_rng(131)
    state = optimizer.init(params)
    value_and_grad = make_grad(1e-4)
    for step in range(1, args.steps + 1):
        rows = rng.integers(len(spectra), size=args.batch_size)
        if not args.once:
            value_and_grad = make_grad(1e-4)
        loss, grads = value_and_grad(params, spectra[rows], pigments[rows])
        params, state = apply_updates(params, state, grads)
        if step % 20 == 0:
            print(f"step {step}: loss {loss:.4f}")
    return jax.block_until_ready(params)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--once", action="store_true")
    args = parser.parse_args()

    rng = np.random.default_rng(130)
    spectra = rng.standard_normal((8192, SIZES[0]), dtype=np.float32)
    pigments = (
        (spectra @ rng.standard_normal((SIZES[0], SIZES[-1]))).argmax(axis=1).astype(np.int32)
    )
    params = init_params(jax.random.key(130))
    started = time.perf_counter()
    train(params, spectra, pigments, args)
    print(f"trained {args.steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
