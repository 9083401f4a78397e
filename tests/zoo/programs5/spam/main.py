import argparse
import time

import numpy as np
from online import OnlineLogistic, OnlineLogisticArrays


def vectorize(mails, n_features):
    X = np.zeros((len(mails), n_features))
    np.add.at(X, (np.arange(len(mails))[:, None], mails * 31 % n_features), 1)
    return X


def inbox(n_parts, part, rng, n_words=5000, length=60):
    """Mails come in parts, as numbers of words; those of spam are other ones, a little."""
    for _ in range(n_parts):
        y = rng.integers(2, size=part)
        mails = rng.exponential(400, (part, length)).astype(int) * (1 + y[:, None]) % n_words
        yield mails, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", type=int, default=400)
    parser.add_argument("--part", type=int, default=256)
    parser.add_argument("--features", type=int, default=2048)
    parser.add_argument("--arrays", action="store_true")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    kind = OnlineLogisticArrays if args.arrays else OnlineLogistic
    model = kind(args.features)
    start = time.perf_counter()
    right = seen = 0
    for number, (mails, y) in enumerate(inbox(args.parts, args.part, rng)):
        X = vectorize(mails, args.features)
        right += int(((model.decision(X) > 0) == y).sum())
        seen += len(y)
        model.partial_fit(X, y)
        if number % 100 == 99:
            print(f"part {number}: {right / seen:.3f} right so far")
    print(f"trained {args.parts} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
