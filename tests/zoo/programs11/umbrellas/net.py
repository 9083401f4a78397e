import jax
import jax.numpy as jnp


def init(key, sensors, hidden):
    kx, kh, ko = jax.random.split(key, 3)
    return {
        "wx": jax.random.normal(kx, (sensors, 3 * hidden)) / sensors**0.5,
        "wh": jax.random.normal(kh, (hidden, 3 * hidden)) / hidden**0.5,
        "b": jnp.zeros(3 * hidden),
        "out": jax.random.normal(ko, (hidden,)) / hidden**0.5,
    }


def cell(params, h, x):
    rx, zx, nx = jnp.split(x @ params["wx"] + params["b"], 3, axis=-1)
    rh, zh, nh = jnp.split(h @ params["wh"], 3, axis=-1)
    r, z = jax.nn.sigmoid(rx + rh), jax.nn.sigmoid(zx + zh)
    return (1 - z) * jnp.tanh(nx + r * nh) + z * h


def logits(params, x):
    def step(h, x_t):
        return cell(params, h, x_t), None

    h = jnp.zeros((x.shape[0], params["wh"].shape[0]))
    h, _ = jax.lax.scan(step, h, jnp.swapaxes(x, 0, 1))
    return h @ params["out"]
