import argparse
import time

import numpy as np
from stream import Scaler, readings


class Net:
    def __init__(self, n_in, hidden, rng):
        self.w1 = rng.normal(0, n_in**-0.5, (n_in, hidden))
        self.b1 = np.zeros(hidden)
        self.w2 = rng.normal(0, hidden**-0.5, hidden)

    def fit_batch(self, x, y, lr):
        h = np.tanh(x @ self.w1 + self.b1)
        error = h @ self.w2 - y
        dh = (error[:, None] * self.w2) * (1 - h**2) / len(x)
        self.w2 -= lr * (h.T @ error / len(x) + 1e-5 * self.w2)
        self.w1 -= lr * (x.T @ dh + 1e-5 * self.w1)
        self.b1 -= lr * dh.sum(0)
        return float(np.mean(error**2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--columns", type=int, default=96)
    parser.add_argument("--keep", type=int, default=0)
    args = parser.parse_args()
    net = Net(args.columns, 256, np.random.default_rng(1))
    scaler = Scaler(args.keep or None)
    start = time.perf_counter()
    for step, (x, y) in enumerate(readings(args.steps, args.rows, args.columns)):
        scaler.update(x)
        loss = net.fit_batch(scaler.scale(x), y, 0.02)
        if step % 50 == 0:
            print(f"step {step}: {loss:.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
