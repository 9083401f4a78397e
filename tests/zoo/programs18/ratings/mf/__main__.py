import argparse
import os
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from .autoencoder import Autoencoder


def made_up(users, items):
    rng = np.random.default_rng(8)
    stars = rng.integers(1, 6, (users, items))
    return np.where(rng.random((users, items)) < 0.05, stars / 5, 0.0)


def main():
    parser = argparse.ArgumentParser(prog="mf")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--batch", type=int, default=256)
    args = parser.parse_args()
    ratings = made_up(2560, 1200).astype(args.dtype)
    model = Autoencoder(1200, 400, args.dtype)
    n, start = 0, time.perf_counter()
    for epoch in range(20):
        for at in range(0, len(ratings), args.batch):
            loss = model.step(ratings[at : at + args.batch])
            n += 1
    print(f"loss {loss:.4f}")
    print(f"trained {n} steps in {time.perf_counter() - start:.3f} s")


main()
