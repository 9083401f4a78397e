import jax
import jax.numpy as jnp
from logs import FEATURES, ORDERS


def dense(key, inputs, outputs, scale=1.0):
    w = scale * jax.random.normal(key, (inputs, outputs)) / jnp.sqrt(inputs)
    return {"w": w, "b": jnp.zeros(outputs)}


def init(key, width=64):
    a, b, c, d = jax.random.split(key, 4)
    return {
        "first": dense(a, FEATURES, width),
        "second": dense(b, width, width),
        "orders": dense(c, width, ORDERS, 0.1),
        "value": dense(d, width, 1, 0.1),
    }


def trunk(params, x):
    for name in ("first", "second"):
        x = jax.nn.relu(x @ params[name]["w"] + params[name]["b"])
    return x


@jax.jit
def state_values(params, features):
    hidden = trunk(params, features)
    return (hidden @ params["value"]["w"] + params["value"]["b"])[..., 0]


def objective(params, features, orders, advantage, target, temperature):
    hidden = trunk(params, features)
    logits = hidden @ params["orders"]["w"] + params["orders"]["b"]
    values = (hidden @ params["value"]["w"] + params["value"]["b"])[..., 0]
    taken = jnp.take_along_axis(jax.nn.log_softmax(logits), orders[..., None], axis=-1)[..., 0]
    weight = jnp.minimum(jnp.exp(advantage / temperature), 20.0)
    return -jnp.mean(weight * taken) + 0.5 * jnp.mean(jnp.square(values - target))


@jax.jit
def update(params, velocity, features, orders, advantage, values, lr, temperature):
    target = advantage + values[:-1]
    loss, grads = jax.value_and_grad(objective)(
        params, features[:-1], orders, advantage, target, temperature
    )
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
    params = jax.tree.map(lambda p, v: p - lr * v, params, velocity)
    return params, velocity, loss
