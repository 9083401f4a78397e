from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from model import forward

TX = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(5e-4, weight_decay=1e-3))


class TrainState(NamedTuple):
    params: Any
    opt: Any

    @classmethod
    def create(cls, params):
        return cls(params, TX.init(params))

    def apply_gradients(self, grads):
        updates, opt = TX.update(grads, self.opt, self.params)
        return TrainState(optax.apply_updates(self.params, updates), opt)


def loss_fn(params, x, y):
    return jnp.mean(jnp.square(forward(params, x) - y))


grad_fn = jax.jit(jax.value_and_grad(loss_fn))


def step_plain(state, x, y):
    loss, grads = grad_fn(state.params, x, y)
    return state.apply_gradients(grads), loss


@partial(jax.jit, donate_argnums=0)
def step_whole(state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(state.params, x, y)
    return state.apply_gradients(grads), loss


STEPS = {"plain": step_plain, "whole": step_whole}
