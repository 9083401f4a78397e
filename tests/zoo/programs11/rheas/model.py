import jax
import jax.numpy as jnp


def init_layer(key, n_in, n_out):
    return {"w": jax.random.normal(key, (n_in, n_out)) * (2.0 / n_in) ** 0.5, "b": jnp.zeros(n_out)}


def init_net(key, n_in, width, depth, n_out):
    sizes = [n_in] + [width] * depth + [n_out]
    keys = jax.random.split(key, len(sizes) - 1)
    return [init_layer(k, a, b) for k, a, b in zip(keys, sizes, sizes[1:])]


def forward(layers, x):
    x = jax.nn.gelu(x @ layers[0]["w"] + layers[0]["b"])
    for layer in layers[1:-1]:
        x = x + 0.3 * jax.nn.gelu(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]
