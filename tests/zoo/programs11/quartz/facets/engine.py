import jax
import optax

from .config import beta_at
from .model import elbo_terms


def make_update(tx):
    def loss_fn(params, x, key, beta):
        fit, kl = elbo_terms(params, x, key)
        return fit + beta * kl

    def update(params, state, x, key, beta):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, key, beta)
        changes, state = tx.update(grads, state, params)
        return optax.apply_updates(params, changes), state, loss

    return update


class Engine:
    def __init__(self, cfg, params):
        self.cfg, self.params = cfg, params
        self.tx = optax.adam(cfg.lr)
        self.state = self.tx.init(params)
        self.update = jax.jit(make_update(self.tx))

    def update_for(self, epoch):
        beta = beta_at(epoch, self.cfg)
        if self.cfg.anneal == "argument":
            return lambda params, state, x, key: self.update(params, state, x, key, beta)
        update = make_update(self.tx)

        def annealed(params, state, x, key):
            return update(params, state, x, key, beta)

        return jax.jit(annealed)

    def run_epoch(self, epoch, batches, key):
        update = self.update_for(epoch)
        steps = 0
        for x in batches:
            key, sub = jax.random.split(key)
            self.params, self.state, loss = update(self.params, self.state, x, sub)
            steps += 1
        return steps, float(loss)
