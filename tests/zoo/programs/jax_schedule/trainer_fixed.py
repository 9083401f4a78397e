from functools import partial

import jax
import jax.numpy as jnp
import optax


class Trainer:
    """Trains with a learning rate that falls from step to step."""

    def __init__(self, sizes, peak, steps):
        keys = jax.random.split(jax.random.PRNGKey(0), len(sizes))
        self.params = [
            (jax.random.normal(k, (n, m)) / n**0.5, jnp.zeros(m))
            for k, n, m in zip(keys, sizes[:-1], sizes[1:])
        ]
        self.peak, self.steps = peak, steps
        self.optimizer = optax.scale_by_adam()
        self.state = self.optimizer.init(self.params)

    def rate(self, step):
        return self.peak * (1 - step / self.steps)

    @staticmethod
    def loss(params, x, y):
        for w, b in params[:-1]:
            x = jax.nn.gelu(x @ w + b)
        w, b = params[-1]
        return jnp.mean((x @ w + b - y) ** 2)

    @partial(jax.jit, static_argnums=0)
    def update(self, params, state, x, y, rate):
        loss, grads = jax.value_and_grad(self.loss)(params, x, y)
        updates, state = self.optimizer.update(grads, state)
        params = jax.tree_util.tree_map(lambda p, u: p - rate * u, params, updates)
        return params, state, loss

    def fit(self, data):
        for step, (x, y) in enumerate(data):
            self.params, self.state, loss = self.update(
                self.params, self.state, x, y, self.rate(step)
            )
        return float(loss)
