import time

import jax
import numpy as np
import optax
from kinetics import init, loss_fn
from patients import batches, simulate


def train_epoch(params, opt_state, optimizer, data, rng):
    @jax.jit
    def update(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, *batch)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    losses = []
    for batch in batches(data, 128, rng):
        params, opt_state, loss = update(params, opt_state, batch)
        losses.append(loss)
    return params, opt_state, losses


def main():
    data = simulate(1536, seed=2)
    rng = np.random.default_rng(2)
    params = init(jax.random.key(2))
    optimizer = optax.adam(2e-3)
    opt_state = optimizer.init(params)

    steps = 0
    start = time.perf_counter()
    for epoch in range(8):
        params, opt_state, losses = train_epoch(params, opt_state, optimizer, data, rng)
        steps += len(losses)
        if epoch % 4 == 3:
            print(f"epoch {epoch}: loss {np.mean(losses):.4f}")
    jax.block_until_ready(params)
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
