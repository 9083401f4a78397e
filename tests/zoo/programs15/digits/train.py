"""beta-VAE in equinox, beta is warmed up during training."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class VAE(eqx.Module):
    enc: eqx.nn.MLP
    dec: eqx.nn.MLP

    def __init__(self, key):
        a, b = jax.random.split(key)
        self.enc = eqx.nn.MLP(784, 32, 384, 2, key=a)
        self.dec = eqx.nn.MLP(16, 784, 384, 2, key=b)

    def __call__(self, x, key):
        mu, logvar = jnp.split(self.enc(x), 2)
        z = mu + jnp.exp(0.5 * logvar) * jax.random.normal(key, mu.shape)
        return self.dec(z), mu, logvar


def elbo(model, x, key, beta):
    keys = jax.random.split(key, len(x))
    logits, mu, logvar = jax.vmap(model)(x, keys)
    rec = optax.sigmoid_binary_cross_entropy(logits, x).sum(-1)
    kl = -0.5 * (1 + logvar - mu**2 - jnp.exp(logvar)).sum(-1)
    return (rec + beta * kl).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedule", choices=["python", "array"], default="python")
    args = parser.parse_args()
    data = (np.random.default_rng(10).random((4000, 784)) > 0.8).astype(np.float32)
    key = jax.random.PRNGKey(10)
    model = VAE(key)
    optim = optax.adam(1e-3)
    state = optim.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def train_step(model, state, x, key, beta):
        loss, grads = eqx.filter_value_and_grad(elbo)(model, x, key, beta)
        updates, state = optim.update(grads, state)
        return eqx.apply_updates(model, updates), state, loss

    rng = np.random.default_rng(0)
    steps = 240
    start = time.perf_counter()
    for step in range(steps):
        beta = min(1.0, (step // 40) / 10)
        if args.schedule == "array":
            beta = jnp.asarray(beta)
        key, sub = jax.random.split(key)
        x = data[rng.integers(0, len(data), 128)]
        model, state, loss = train_step(model, state, x, sub, beta)
        if step % 30 == 29:
            print(step, float(loss))
    jax.block_until_ready(loss)
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
