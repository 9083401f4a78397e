import argparse
import time
import zlib

import numpy as np
from online import OnlineLogistic, OnlineLogisticArrays


def vectorize(mails, n_features):
    X = np.zeros((len(mails), n_features))
    for row, mail in zip(X, mails):
        for word in mail:
            row[zlib.crc32(word) % n_features] += 1
    return X


def inbox(n_parts, part, rng):
    """Mails come in parts; the words of spam are other ones, a little."""
    words = np.array([f"w{i}".encode() for i in range(5000)], dtype=object)
    for _ in range(n_parts):
        y = rng.integers(2, size=part)
        mails = []
        for spam in y:
            chosen = (rng.exponential(400, 60).astype(int) * (1 + spam)) % len(words)
            mails.append(words[chosen])
        yield mails, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", type=int, default=300)
    parser.add_argument("--part", type=int, default=64)
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
