import equinox as eqx
import jax
import jax.numpy as jnp


class VAE(eqx.Module):
    encoder: eqx.nn.MLP
    decoder: eqx.nn.MLP
    latent: int = eqx.field(static=True)

    def __init__(self, n_pixels, latent, *, key):
        k1, k2 = jax.random.split(key)
        self.latent = latent
        self.encoder = eqx.nn.MLP(n_pixels, 2 * latent, 384, 2, key=k1)
        self.decoder = eqx.nn.MLP(latent, n_pixels, 384, 2, key=k2)

    def __call__(self, x, key):
        mean, log_var = jnp.split(self.encoder(x), 2)
        z = mean + jnp.exp(0.5 * log_var) * jax.random.normal(key, mean.shape)
        kl = 0.5 * jnp.sum(mean**2 + jnp.exp(log_var) - 1 - log_var)
        return self.decoder(z), kl


def elbo(model, images, beta, key):
    keys = jax.random.split(key, len(images))
    logits, kl = jax.vmap(model)(images, keys)
    nll = jnp.sum(jax.nn.softplus(logits) - images * logits, axis=1)
    return jnp.mean(nll + beta * kl)
