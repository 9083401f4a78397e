"""Conditional neural process for reactor runs, with jax and optax."""

import time
from functools import partial

import jax
import jax.numpy as jnp
import optax

from curves_fixed import Experiments

STEPS = 84
BATCH = 64
WIDTH = 128
FEWEST, MOST = 4, 34


def init_mlp(key, sizes):
    layers = []
    for n_in, n_out in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        w = jax.random.normal(sub, (n_in, n_out)) * jnp.sqrt(2.0 / n_in)
        layers.append({"w": w, "b": jnp.zeros(n_out)})
    return layers


def mlp(layers, x):
    for layer in layers[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def init_params(key):
    k1, k2 = jax.random.split(key)
    return {
        "encoder": init_mlp(k1, [2, WIDTH, WIDTH, WIDTH]),
        "decoder": init_mlp(k2, [WIDTH + 1, WIDTH, WIDTH, WIDTH, 2]),
    }


def predict(params, shown, context, times):
    r = mlp(params["encoder"], context) * shown[..., None]
    r = r.sum(1, keepdims=True) / shown.sum(1)[:, None, None]
    r = jnp.broadcast_to(r, (*times.shape[:2], WIDTH))
    mean, spread = jnp.split(mlp(params["decoder"], jnp.concatenate([r, times], -1)), 2, -1)
    return mean[..., 0], 0.01 + jax.nn.softplus(spread[..., 0])


def loss_fn(params, shown, context, times, values):
    mean, std = predict(params, shown, context, times)
    return jnp.mean(0.5 * ((values - mean) / std) ** 2 + jnp.log(std))


@partial(jax.jit, static_argnums=0, donate_argnums=(1, 2))
def update(tx, params, opt_state, shown, context, times, values):
    loss, grads = jax.value_and_grad(loss_fn)(params, shown, context, times, values)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def context_size(step):
    """Many points first, fewer as the training goes on."""
    return MOST - (MOST - FEWEST) * (step - 1) // STEPS // 6 * 6


def main():
    runs = Experiments(2000, seed=8)
    params = init_params(jax.random.PRNGKey(0))
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))
    opt_state = tx.init(params)

    start = time.perf_counter()
    for step in range(1, STEPS + 1):
        batch = runs.sample(BATCH, context_size(step), MOST)
        params, opt_state, loss = update(tx, params, opt_state, *batch)
        if step % 20 == 0:
            print(f"step {step:3d}  nll {float(loss):.3f}")
    jax.block_until_ready(params)
    print(f"trained {STEPS} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
