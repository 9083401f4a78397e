from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp


class Dynamics(nn.Module):
    """Energy-like network; forces are its gradient."""

    widths: Sequence[int] = (256, 256, 256)

    @nn.compact
    def __call__(self, state):
        h = state
        for width in self.widths:
            h = nn.tanh(nn.Dense(width)(h))
        return nn.Dense(state.shape[-1])(h)


def rollout(apply, params, state, dt, n):
    def one(state, _):
        k1 = apply(params, state)
        k2 = apply(params, state + dt * k1 / 2)
        return state + dt * k2, state + dt * k2

    return jax.lax.scan(one, state, None, length=n)[1]


def rollout_loss(apply, params, start, path, dt):
    predicted = rollout(apply, params, start, dt, path.shape[0])
    return jnp.mean((predicted - path) ** 2)
