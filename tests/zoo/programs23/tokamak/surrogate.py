"""Transport coefficients of a plasma from its profiles: a network instead of the code."""

import jax
import jax.numpy as jnp


def init(key, settings):
    sizes = (settings.inputs, *settings.hidden, settings.outputs)
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"w": jax.random.normal(k, (m, n)) * (2.0 / m) ** 0.5, "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes, sizes[1:])
    ]


def predict(params, profiles):
    x = profiles
    for layer in params[:-1]:
        x = jax.nn.silu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params, profiles, fluxes):
    return jnp.mean(jnp.square(jnp.arcsinh(predict(params, profiles)) - jnp.arcsinh(fluxes)))


def adam(params, grads, state, lr, settings):
    count = state["count"] + 1
    m = jax.tree.map(lambda m, g: settings.b1 * m + (1 - settings.b1) * g, state["m"], grads)
    v = jax.tree.map(lambda v, g: settings.b2 * v + (1 - settings.b2) * g * g, state["v"], grads)
    scale = jnp.sqrt(1 - settings.b2**count) / (1 - settings.b1**count)
    params = jax.tree.map(
        lambda p, m, v: p - lr * (scale * m / (jnp.sqrt(v) + settings.eps) + settings.decay * p),
        params,
        m,
        v,
    )
    return params, {"m": m, "v": v, "count": count}


def fresh_state(params):
    zeros = jax.tree.map(jnp.zeros_like, params)
    return {"m": zeros, "v": zeros, "count": jnp.zeros((), jnp.float32)}
