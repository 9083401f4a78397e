import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from harmonics import make_tides, windows


class Forecaster(eqx.Module):
    cell: eqx.nn.GRUCell
    mlp: eqx.nn.MLP

    def __init__(self, hidden, ahead, key):
        a, b = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(8, hidden, key=a)
        self.mlp = eqx.nn.MLP(hidden, ahead, 128, 2, key=b)

    def __call__(self, past):
        def step(h, x):
            return self.cell(x, h), None

        h, _ = jax.lax.scan(step, jnp.zeros(self.cell.hidden_size), past.reshape(-1, 8))
        return self.mlp(h)


def loss_of(model, past, future):
    return jnp.mean((jax.vmap(model)(past) - future) ** 2)


def train_epoch(model, state, optimizer, data):
    @eqx.filter_jit
    def step(model, state, past, future):
        loss, grads = eqx.filter_value_and_grad(loss_of)(model, past, future)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), state, loss

    for past, future in data:
        model, state, loss = step(model, state, past, future)
    return model, state, loss


@eqx.filter_jit
def train_step(model, state, optimizer, past, future):
    loss, grads = eqx.filter_value_and_grad(loss_of)(model, past, future)
    updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, loss


def train_epoch_shared(model, state, optimizer, data):
    for past, future in data:
        model, state, loss = train_step(model, state, optimizer, past, future)
    return model, state, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--steps-per-epoch", type=int, default=15)
    parser.add_argument("--shared-step", action="store_true")
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    levels = make_tides(3000, 12)
    model = Forecaster(96, 24, jax.random.key(0))
    optimizer = optax.adam(1e-3)
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    epoch_of = train_epoch_shared if args.shared_step else train_epoch
    start = time.perf_counter()
    for epoch in range(args.epochs):
        data = (windows(levels, 64, 192, 24, rng) for _ in range(args.steps_per_epoch))
        model, state, loss = epoch_of(model, state, optimizer, data)
        print(f"epoch {epoch}: {float(loss):.4f}")
    steps = args.epochs * args.steps_per_epoch
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
