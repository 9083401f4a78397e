"""Question 8, NumPy: which of forty parties does a district vote for?"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import math
import time

import numpy as np

PARTIES = 40


def chances_by_hand(scores):
    chances = np.empty_like(scores)
    for row in range(scores.shape[0]):
        highest = max(scores[row])
        powers = [math.exp(score - highest) for score in scores[row]]
        total = sum(powers)
        for party in range(PARTIES):
            chances[row, party] = powers[party] / total
    return chances


def chances_at_once(scores):
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


class Network:
    def __init__(self, rng, softmax):
        self.w1 = rng.normal(0, 0.05, (320, 512)).astype(np.float32)
        self.b1 = np.zeros(512, dtype=np.float32)
        self.w2 = rng.normal(0, 0.05, (512, PARTIES)).astype(np.float32)
        self.b2 = np.zeros(PARTIES, dtype=np.float32)
        self.softmax = softmax

    def learn(self, x, votes, rate):
        hidden = np.maximum(x @ self.w1 + self.b1, 0)
        error = self.softmax(hidden @ self.w2 + self.b2)
        error[np.arange(len(votes)), votes] -= 1
        error /= len(votes)
        back = error @ self.w2.T
        back *= hidden > 0
        self.w2 -= rate * (hidden.T @ error)
        self.b2 -= rate * error.sum(axis=0)
        self.w1 -= rate * (x.T @ back)
        self.b1 -= rate * back.sum(axis=0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=220)
    parser.add_argument("--at-once", action="store_true")
    args = parser.parse_args()
    rng = np.random.default_rng(8)
    districts = rng.normal(size=(5120, 320)).astype(np.float32)
    votes = districts[:, :PARTIES].argmax(axis=1)
    network = Network(rng, chances_at_once if args.at_once else chances_by_hand)
    start = time.perf_counter()
    for step in range(args.steps):
        rows = slice(step % 10 * 512, step % 10 * 512 + 512)
        network.learn(districts[rows], votes[rows], 0.1)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
