import argparse
import time

import jax
import numpy as np

from model import init_net
from state import STEPS, TrainState


def make_data(rng, rows, features):
    x = rng.standard_normal((rows, features)).astype(np.float32)
    y = np.sin(x[:, :4]).sum(axis=1, keepdims=True).astype(np.float32)
    return x, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--step", choices=sorted(STEPS), default="plain")
    args = parser.parse_args()
    rng = np.random.default_rng(3)
    x, y = make_data(rng, 8192, 128)
    state = TrainState.create(init_net(jax.random.PRNGKey(3), 128, 256, 10, 1))
    train_step = STEPS[args.step]
    batch, steps = 384, 120
    start = time.perf_counter()
    for step in range(steps):
        at = rng.integers(0, len(x), batch)
        state, loss = train_step(state, x[at], y[at])
        if step % 40 == 0:
            print(f"step {step} loss {float(loss):.4f}")
    jax.block_until_ready(state.params)
    took = time.perf_counter() - start
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
