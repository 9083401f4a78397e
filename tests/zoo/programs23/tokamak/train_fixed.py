import time

import jax
import numpy as np
from settings import Settings, cosine
from shots import make_shots
from surrogate import adam, fresh_state, init, loss_fn


def build_update(settings):
    @jax.jit
    def update(params, state, profiles, fluxes, lr):
        loss, grads = jax.value_and_grad(loss_fn)(params, profiles, fluxes)
        params, state = adam(params, grads, state, lr, settings)
        return params, state, loss

    return update


def main():
    settings = Settings()
    profiles, fluxes = make_shots(16 * settings.batch, settings.inputs, settings.outputs, seed=2)
    rng = np.random.default_rng(2)
    params = init(jax.random.key(2), settings)
    state = fresh_state(params)
    update = build_update(settings)

    start = time.perf_counter()
    for step in range(settings.steps):
        lr = cosine(settings, step)
        rows = rng.integers(0, len(profiles), size=settings.batch)
        params, state, loss = update(params, state, profiles[rows], fluxes[rows], np.float32(lr))
        if (step + 1) % 40 == 0:
            print(f"step {step + 1}: loss {float(loss):.5f}")
    jax.block_until_ready(params)
    print(f"trained {settings.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
