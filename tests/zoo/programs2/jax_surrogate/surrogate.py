import jax
import jax.numpy as jnp


def init(key, sizes):
    params = []
    for n, m in zip(sizes, sizes[1:]):
        key, sub = jax.random.split(key)
        params.append((jax.random.normal(sub, (n, m)) * (2 / n) ** 0.5, jnp.zeros(m)))
    return params


def predict(params, x):
    for weight, bias in params[:-1]:
        x = jnp.tanh(x @ weight + bias)
    weight, bias = params[-1]
    return (x @ weight + bias)[:, 0]


def loss_fn(params, x, y, mask):
    return jnp.sum(mask * (predict(params, x) - y) ** 2) / jnp.sum(mask)


@jax.jit
def refit(params, velocity, x, y, mask, lr):
    """One step of gradient descent on all that was measured so far."""
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y, mask)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
    params = jax.tree.map(lambda p, v: p - lr * v, params, velocity)
    return params, velocity, loss


@jax.jit
def propose(params, candidates):
    return candidates[jnp.argmin(predict(params, candidates))]
