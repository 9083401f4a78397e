import jax
import jax.numpy as jnp
from patients import COVARIATES

STATE = 128


def init(key):
    keys = jax.random.split(key, 3)

    def dense(key, inputs, outputs):
        return jax.random.normal(key, (inputs, outputs)) / jnp.sqrt(inputs)

    return {
        "start": dense(keys[0], COVARIATES, STATE),
        "gates": dense(keys[1], STATE + 1, 2 * STATE),
        "level": dense(keys[2], STATE, 1),
    }


def predict(params, covariates, rates):
    def hour(state, rate):
        inputs = jnp.concatenate([state, rate[:, None]], axis=1)
        keep, candidate = jnp.split(inputs @ params["gates"], 2, axis=1)
        keep = jax.nn.sigmoid(keep)
        state = keep * state + (1 - keep) * jnp.tanh(candidate)
        return state, state

    _, states = jax.lax.scan(hour, jnp.tanh(covariates @ params["start"]), rates.T)
    return (states @ params["level"])[..., 0].T


def loss_fn(params, covariates, rates, levels):
    return jnp.mean((predict(params, covariates, rates) - levels) ** 2)
