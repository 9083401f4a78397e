import argparse
import time

import numpy as np

from .journal import Journal
from .model import Factors


def ratings(people, dishes):
    rng = np.random.default_rng(30)
    taste = rng.normal(size=(people, 6)) @ rng.normal(size=(6, dishes))
    known = rng.random((people, dishes)) < 0.3
    return (taste * known).astype(np.float32)


def main():
    parser = argparse.ArgumentParser(prog="tastes")
    parser.add_argument("--journal-every", type=int, default=1)
    parser.add_argument("--steps", type=int, default=360)
    parser.add_argument("--batch", type=int, default=512)
    args = parser.parse_args()
    data = ratings(512 * 9, 700)
    model = Factors(data.shape[1], 160, seed=31)
    journal = Journal("journal.txt", args.journal_every)
    begin = time.perf_counter()
    for step in range(args.steps):
        at = step * args.batch % len(data)
        error = model.fit_batch(data[at : at + args.batch], rate=0.02)
        journal.write(step, error)
    seconds = time.perf_counter() - begin
    print(f"rmse {np.sqrt((error**2).mean()):.3f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
