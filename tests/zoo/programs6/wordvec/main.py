import argparse
import time

import numpy as np

from skipgram import SkipGram


def pairs(rng, words, count):
    while True:
        centre = (words * rng.random(count) ** 3).astype(np.int64)
        context = (words * rng.random(count) ** 3).astype(np.int64)
        yield centre, context, rng.integers(0, 2, count)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", type=int, default=5000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--pairs", type=int, default=2048)
    parser.add_argument("--update", choices=["pairs", "batch"], default="pairs")
    args = parser.parse_args()
    model = SkipGram(args.words, args.width)
    update = model.update_pairs if args.update == "pairs" else model.update
    start = time.perf_counter()
    for step, (centre, context, label) in enumerate(
        pairs(np.random.default_rng(8), args.words, args.pairs)
    ):
        if step == args.steps:
            break
        loss = update(centre, context, label, lr=0.05)
        if step % 60 == 0:
            print(f"{step}: {loss:.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
