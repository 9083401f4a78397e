"""VAE with KL warm-up, JAX + optax."""

import argparse
import os
import time
from functools import partial

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np
import optax

LATENT, HIDDEN, PIXELS = 32, 640, 784
tx = optax.adam(1e-3)


def dense(key, i, o):
    return {"w": jax.random.normal(key, (i, o)) / i**0.5, "b": jnp.zeros(o)}


def init_params(key):
    k = jax.random.split(key, 5)
    return {
        "enc": dense(k[0], PIXELS, HIDDEN),
        "mu": dense(k[1], HIDDEN, LATENT),
        "logvar": dense(k[2], HIDDEN, LATENT),
        "dec": dense(k[3], LATENT, HIDDEN),
        "out": dense(k[4], HIDDEN, PIXELS),
    }


def apply(layer, x):
    return x @ layer["w"] + layer["b"]


def elbo(params, x, key, beta):
    h = jax.nn.relu(apply(params["enc"], x))
    mu, logvar = apply(params["mu"], h), apply(params["logvar"], h)
    z = mu + jnp.exp(0.5 * logvar) * jax.random.normal(key, mu.shape)
    logits = apply(params["out"], jax.nn.relu(apply(params["dec"], z)))
    recon = optax.sigmoid_binary_cross_entropy(logits, x).sum(-1).mean()
    kl = -0.5 * (1 + logvar - mu**2 - jnp.exp(logvar)).sum(-1).mean()
    return recon + beta * kl


def step_body(params, opt_state, x, key, beta):
    loss, grads = jax.value_and_grad(elbo)(params, x, key, beta)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


@partial(jax.jit, static_argnames=("beta",))
def train_step(params, opt_state, x, key, beta):
    return step_body(params, opt_state, x, key, beta)


@jax.jit
def train_step_traced(params, opt_state, x, key, beta):
    return step_body(params, opt_state, x, key, beta)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=120)
    ap.add_argument("--beta", choices=["static", "traced"], default="static")
    args = ap.parse_args()
    step_fn = train_step if args.beta == "static" else train_step_traced
    rng = np.random.default_rng(0)
    data = (rng.random((4096, PIXELS)) < 0.3).astype(np.float32)
    key = jax.random.PRNGKey(0)
    params = init_params(key)
    opt_state = tx.init(params)
    began = time.perf_counter()
    for step in range(args.steps):
        beta = min(1.0, (step // 24) * 24 / args.steps)
        key, sub = jax.random.split(key)
        x = data[rng.integers(0, len(data), 128)]
        params, opt_state, loss = step_fn(params, opt_state, x, sub, beta)
    jax.block_until_ready(loss)
    took = time.perf_counter() - began
    print(f"elbo {float(loss):.2f}")
    print(f"trained {args.steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
