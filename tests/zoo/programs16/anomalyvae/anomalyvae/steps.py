from functools import partial

import equinox as eqx
import jax
import optax

from .model import elbo


def build_step(optimizer, static):
    def update(params, opt_state, batch, key, kl_weight, free_nats):
        def loss_of(p):
            return elbo(eqx.combine(p, static), batch, key, kl_weight, free_nats)

        loss, grads = jax.value_and_grad(loss_of)(params)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    @partial(jax.jit, static_argnames=("objective",))
    def step_with_objective(params, opt_state, batch, key, objective):
        return update(params, opt_state, batch, key, objective.kl_weight, objective.free_nats)

    @jax.jit
    def step_with_weights(params, opt_state, batch, key, kl_weight, free_nats):
        return update(params, opt_state, batch, key, kl_weight, free_nats)

    return step_with_objective, step_with_weights
