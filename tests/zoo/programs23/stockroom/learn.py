import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
from advantage import estimate, scan_estimate
from logs import make_chunks
from policy import init, state_values, update


def main():
    parser = argparse.ArgumentParser(description="Advantage-weighted regression on logged orders")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--shelves", type=int, default=320)
    parser.add_argument("--discount", type=float, default=0.97)
    parser.add_argument("--trace", type=float, default=0.9)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--estimator", choices=["loop", "scan"], default="loop")
    args = parser.parse_args()

    chunks = make_chunks(12, args.days, args.shelves, seed=9)
    order = np.random.default_rng(9).integers(0, len(chunks), size=args.steps)
    params = init(jax.random.key(9))
    velocity = jax.tree.map(jnp.zeros_like, params)

    began = time.perf_counter()
    for step, pick in enumerate(order, 1):
        chunk = chunks[pick]
        values = state_values(params, chunk.features)
        if args.estimator == "loop":
            advantage = estimate(
                chunk.profit, chunk.ended, np.asarray(values), args.discount, args.trace
            )
        else:
            advantage = scan_estimate(chunk.profit, chunk.ended, values, args.discount, args.trace)
        params, velocity, loss = update(
            params,
            velocity,
            chunk.features,
            chunk.orders,
            advantage,
            values,
            args.lr,
            args.temperature,
        )
        if step % 25 == 0:
            print(f"step {step:4d}  objective {float(loss):.4f}")
    jax.block_until_ready(params)
    print(f"trained {args.steps} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
