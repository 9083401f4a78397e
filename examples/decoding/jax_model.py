"""A small state-space model in JAX: diagonal linear recurrences, computed by a scan."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr


class StateSpace(eqx.Module):
    """h[t] = a h[t-1] + B x[t];  y[t] = C h[t] + D x[t]."""

    decay: jax.Array
    b: jax.Array
    c: jax.Array
    d: jax.Array

    def __init__(self, width, states, key):
        b, c = jr.split(key)
        # From slow to fast, as sigmoid(decay).
        self.decay = jnp.linspace(0.0, 4.0, states)
        self.b = jr.normal(b, (states, width)) / width**0.5
        self.c = jr.normal(c, (width, states)) / states**0.5
        self.d = jnp.ones(width)

    def __call__(self, x):
        a = jax.nn.sigmoid(self.decay)
        driven = (1 - a) * (x @ self.b.T)

        def advance(h, u):
            h = a * h + u
            return h, h

        _, h = jax.lax.scan(advance, jnp.zeros_like(a), driven)
        return h @ self.c.T + self.d * x


class Decoder(eqx.Module):
    """Spikes in, velocity out: state spaces with a nonlinearity in between."""

    encoder: eqx.nn.Linear
    layers: list
    dropout: eqx.nn.Dropout
    decoder: eqx.nn.Linear

    def __init__(self, neurons, width=32, states=32, depth=2, *, key):
        first, last, *rest = jr.split(key, depth + 2)
        self.encoder = eqx.nn.Linear(neurons, width, key=first)
        self.layers = [StateSpace(width, states, one) for one in rest]
        self.dropout = eqx.nn.Dropout(0.05)
        self.decoder = eqx.nn.Linear(width, 2, key=last)

    def __call__(self, spikes, state, key):
        x = jax.vmap(self.encoder)(spikes)
        for layer in self.layers:
            key, one = jr.split(key)
            x = x + self.dropout(jax.nn.gelu(layer(x)), key=one)
        return jax.vmap(self.decoder)(x), state


def predict(model, state, inputs, key):
    """Return the velocities of a batch, and the state."""
    keys = jr.split(key, inputs.shape[0])
    run = jax.vmap(model, axis_name="batch", in_axes=(0, None, 0), out_axes=(0, None))
    return run(inputs, state, keys)


@eqx.filter_value_and_grad(has_aux=True)
def mse_loss(params, static, state, inputs, targets, key):
    """Return ((loss, state), gradients)."""
    predicted, state = predict(eqx.combine(params, static), state, inputs, key)
    return jnp.mean((predicted - targets) ** 2), state


def make(neurons, key):
    """Return a model, its state, and which of its leaves are trained."""
    model, state = eqx.nn.make_with_state(Decoder)(neurons, key=key)
    return model, state, jax.tree_util.tree_map(eqx.is_inexact_array, model)
