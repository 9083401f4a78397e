import argparse
import dataclasses
import os
import time

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import equinox as eqx
import jax
import numpy as np
import optax

from .config import Config, Objective
from .model import VAE
from .steps import build_step


def machine_readings(count, sensors, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((count, 6), dtype=np.float32)
    mixing = rng.standard_normal((6, sensors), dtype=np.float32)
    return hidden @ mixing + 0.1 * rng.standard_normal((count, sensors), dtype=np.float32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pass-weights", action="store_true")
    args = parser.parse_args()
    cfg, objective = Config(), Objective()

    readings = machine_readings(cfg.batch_size * cfg.steps_per_epoch, cfg.sensors)
    key = jax.random.PRNGKey(1)
    params, static = eqx.partition(
        VAE(cfg.sensors, cfg.hidden, cfg.latent, key), eqx.is_inexact_array
    )
    optimizer = optax.adam(cfg.learning_rate)
    opt_state = optimizer.init(params)
    step_with_objective, step_with_weights = build_step(optimizer, static)

    steps = 0
    started = time.perf_counter()
    for epoch in range(cfg.epochs):
        objective = dataclasses.replace(objective, kl_weight=min(1.0, epoch / 20))
        for i in range(cfg.steps_per_epoch):
            batch = readings[i * cfg.batch_size : (i + 1) * cfg.batch_size]
            key, noise = jax.random.split(key)
            if args.pass_weights:
                params, opt_state, loss = step_with_weights(
                    params, opt_state, batch, noise, objective.kl_weight, objective.free_nats
                )
            else:
                params, opt_state, loss = step_with_objective(
                    params, opt_state, batch, noise, objective
                )
            steps += 1
        print(f"epoch {epoch}: loss {float(loss):.3f}")
    elapsed = time.perf_counter() - started
    print(f"trained {steps} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
