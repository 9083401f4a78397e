import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from mlp import Network


def delays(n, seed=14):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 100), dtype=np.float32)
    return x, np.maximum(x[:, :5], 0).astype(np.float32)


def main(epochs=10, batch=512):
    x, y = delays(batch * 20)
    rng = np.random.default_rng(1)
    network = Network([100, 512, 512, 5])
    steps = 0
    start = time.perf_counter()
    for epoch in range(epochs):
        order = rng.permutation(len(x))
        for i in range(0, len(x), batch):
            rows = order[i : i + batch]
            loss = network.train_batch(x[rows], y[rows], lr=0.05)
            steps += 1
        print(f"epoch {epoch}: {loss:.5f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
