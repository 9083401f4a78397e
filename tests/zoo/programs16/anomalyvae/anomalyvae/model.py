import equinox as eqx
import jax
import jax.numpy as jnp


class VAE(eqx.Module):
    encoder: eqx.nn.MLP
    decoder: eqx.nn.MLP

    def __init__(self, sensors, hidden, latent, key):
        first, second = jax.random.split(key)
        self.encoder = eqx.nn.MLP(sensors, 2 * latent, hidden, 2, key=first)
        self.decoder = eqx.nn.MLP(latent, sensors, hidden, 2, key=second)

    def __call__(self, x, key):
        mean, log_var = jnp.split(self.encoder(x), 2)
        z = mean + jnp.exp(0.5 * log_var) * jax.random.normal(key, mean.shape)
        return self.decoder(z), mean, log_var


def elbo(model, batch, key, kl_weight, free_nats):
    keys = jax.random.split(key, len(batch))
    rebuilt, mean, log_var = jax.vmap(model)(batch, keys)
    error = jnp.square(rebuilt - batch).sum(axis=1).mean()
    kl = -0.5 * (1 + log_var - mean**2 - jnp.exp(log_var)).sum(axis=1).mean()
    return error + kl_weight * jnp.maximum(kl, free_nats)
