import argparse
import os
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from network import Network, cross_entropy, cross_entropy_arrays


def load(count, seed=1):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count)
    prototypes = rng.random((10, 784), dtype=np.float32)
    images = prototypes[labels] + 0.3 * rng.standard_normal((count, 784), dtype=np.float32)
    return images, np.eye(10, dtype=np.float32)[labels]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--loss", choices=["plain", "arrays"], default="plain")
    parser.add_argument("--batch", type=int, default=512)
    args = parser.parse_args()
    images, labels = load(20480)
    net = Network([784, 256, 10], cross_entropy if args.loss == "plain" else cross_entropy_arrays)
    start = time.perf_counter()
    steps = 0
    for epoch in range(16):
        for at in range(0, len(images), args.batch):
            batch = slice(at, at + args.batch)
            loss = net.step(images[batch], labels[batch], np.float32(0.1))
            steps += 1
        print(f"epoch {epoch} loss {loss:.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
