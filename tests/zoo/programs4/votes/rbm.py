"""A restricted Boltzmann machine on roll-call votes; NumPy, persistent contrastive divergence."""

import argparse
import time

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class RBM:
    def __init__(self, n_visible, n_hidden, n_chains, rng):
        self.rng = rng
        self.w = rng.normal(0, 0.02, (n_visible, n_hidden)).astype(np.float32)
        self.b = np.zeros(n_visible, np.float32)
        self.c = np.zeros(n_hidden, np.float32)
        self.chains = (rng.random((n_chains, n_visible)) < 0.5).astype(np.float32)

    def hidden(self, v):
        return sigmoid(v @ self.w + self.c)

    def visible(self, h):
        return sigmoid(h @ self.w.T + self.b)

    def sample(self, p):
        return (self.rng.random(p.shape, dtype=np.float32) < p).astype(np.float32)

    def step(self, v, lr):
        positive = self.hidden(v)
        self.chains = self.sample(self.visible(self.sample(self.hidden(self.chains))))
        negative = self.hidden(self.chains)
        self.w += lr * (v.T @ positive / len(v) - self.chains.T @ negative / len(self.chains))
        self.b += lr * (v.mean(0) - self.chains.mean(0))
        self.c += lr * (positive.mean(0) - negative.mean(0))
        return v, positive

    def error(self, v, positive):
        return float(np.mean((v - self.visible(positive)) ** 2))


def roll_calls(n_members, n_votes, rng):
    leaning = rng.normal(0, 1, (n_members, 4))
    issue = rng.normal(0, 1, (4, n_votes))
    return (sigmoid(2 * leaning @ issue) > rng.random((n_members, n_votes))).astype(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--batch", type=int, default=256)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    votes = roll_calls(6000, 600, rng)
    rbm = RBM(600, 192, args.batch, rng)
    start = time.perf_counter()
    for step in range(args.steps):
        batch = votes[rng.integers(0, len(votes), args.batch)]
        v, h = rbm.step(batch, lr=0.05 * (1 - step / args.steps))
        if step % 50 == 0:
            print(f"step {step}: error {rbm.error(v, h):.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
