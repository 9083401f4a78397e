import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from meters import DAY, WEEK, load_curves
from network import Momentum, Network
from scores import smape


def train(network, optimizer, weeks, days, steps, batch, rng):
    errors = []
    for step in range(1, steps + 1):
        chosen = rng.integers(len(weeks), size=batch)
        week, day = weeks[chosen], days[chosen]
        forecast = network.forward(week)
        difference = forecast - day
        optimizer.step(network.backward(difference * np.float32(2 / difference.size)))
        errors.append(smape(forecast, day))
        if step % 40 == 0:
            print(f"step {step}: smape {np.mean(errors[-40:]):.2f} %")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--meters", type=int, default=6000)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--batch", type=int, default=384)
    args = parser.parse_args()

    weeks, days = load_curves(args.meters, seed=17)
    network = Network([WEEK, 768, 768, DAY], seed=17)
    optimizer = Momentum(network, lr=0.002)
    rng = np.random.default_rng(18)
    start = time.perf_counter()
    train(network, optimizer, weeks, days, args.steps, args.batch, rng)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
