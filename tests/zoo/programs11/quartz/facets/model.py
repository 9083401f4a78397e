import jax
import jax.numpy as jnp


def dense(key, n_in, n_out):
    return {"w": jax.random.normal(key, (n_in, n_out)) / n_in**0.5, "b": jnp.zeros(n_out)}


def init(key, cfg):
    k = jax.random.split(key, 4)
    return {
        "enc": dense(k[0], cfg.pixels, cfg.hidden),
        "code": dense(k[1], cfg.hidden, 2 * cfg.code),
        "dec": dense(k[2], cfg.code, cfg.hidden),
        "out": dense(k[3], cfg.hidden, cfg.pixels),
    }


def apply(layer, x):
    return x @ layer["w"] + layer["b"]


def elbo_terms(params, x, key):
    mean, logvar = jnp.split(apply(params["code"], jax.nn.relu(apply(params["enc"], x))), 2, axis=1)
    z = mean + jnp.exp(0.5 * logvar) * jax.random.normal(key, mean.shape)
    logits = apply(params["out"], jax.nn.relu(apply(params["dec"], z)))
    fit = jnp.mean(jnp.sum(jax.nn.softplus(logits) - x * logits, axis=1))
    kl = 0.5 * jnp.mean(jnp.sum(jnp.exp(logvar) + mean**2 - 1.0 - logvar, axis=1))
    return fit, kl
