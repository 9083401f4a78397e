"""Rank search results of a library catalogue. Plain NumPy: two hidden layers and Adam."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time

import numpy as np

from ranker import METHODS, ideal_dcg

FEATURES = 136


def make_queries(count, truth, rng):
    queries = []
    for _ in range(count):
        x = rng.standard_normal((32, FEATURES), dtype=np.float32)
        quality = (x @ truth)[:, 0] + rng.normal(0, 0.3, 32)
        queries.append((x, np.digitize(quality, [-0.8, 0.2, 0.9, 1.6]).astype(np.float32)))
    return queries


class Network:
    def __init__(self, sizes, rng):
        self.weights = [
            (rng.standard_normal((a, b)) * (2 / a) ** 0.5).astype(np.float32)
            for a, b in zip(sizes, sizes[1:])
        ]
        self.biases = [np.zeros(b, np.float32) for b in sizes[1:]]
        self.m = [np.zeros_like(p) for p in self.parameters()]
        self.v = [np.zeros_like(p) for p in self.parameters()]
        self.t = 0

    def parameters(self):
        return self.weights + self.biases

    def forward(self, x):
        self.kept = [x]
        for w, b in zip(self.weights[:-1], self.biases[:-1]):
            x = np.maximum(x @ w + b, 0)
            self.kept.append(x)
        return (x @ self.weights[-1] + self.biases[-1])[:, 0]

    def backward(self, grad):
        grad = grad[:, None]
        dw, db = [], []
        for i in reversed(range(len(self.weights))):
            dw.append(self.kept[i].T @ grad)
            db.append(grad.sum(0))
            if i:
                grad = (grad @ self.weights[i].T) * (self.kept[i] > 0)
        return dw[::-1] + db[::-1]

    def adam(self, grads, lr):
        self.t += 1
        rate = lr * (1 - 0.999**self.t) ** 0.5 / (1 - 0.9**self.t)
        for p, g, m, v in zip(self.parameters(), grads, self.m, self.v):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= rate * m / (np.sqrt(v) + 1e-8)


def ndcg(network, queries, k=10):
    total = 0.0
    for x, grades in queries:
        order = np.argsort(-network.forward(x))[:k]
        gains = 2.0 ** grades[order] - 1
        total += float((gains / np.log2(np.arange(2, k + 2))).sum()) / ideal_dcg(grades)
    return total / len(queries)


def train_step(network, batch, method, lr):
    x = np.concatenate([q[0] for q in batch])
    scores = network.forward(x)
    grad = np.empty(len(scores), np.float32)
    loss, at = 0.0, 0
    for features, grades in batch:
        end = at + len(features)
        grad[at:end], part = method(scores[at:end], grades)
        loss += part
        at = end
    network.adam(network.backward(grad / len(batch)), lr)
    return loss / len(batch)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lambdas", choices=sorted(METHODS), default="pair")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--queries-per-step", type=int, default=16)
    args = parser.parse_args()
    rng = np.random.default_rng(12)
    truth = rng.standard_normal((FEATURES, 1)).astype(np.float32) / FEATURES**0.5
    queries, held_out = make_queries(640, truth, rng), make_queries(20, truth, rng)
    network = Network([FEATURES, 512, 384, 1], rng)
    method = METHODS[args.lambdas]

    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        order = rng.permutation(len(queries))
        losses = []
        for first in range(0, len(order), args.queries_per_step):
            batch = [queries[i] for i in order[first : first + args.queries_per_step]]
            losses.append(train_step(network, batch, method, 1e-3))
            steps += 1
        print(f"epoch {epoch}: {np.mean(losses):.4f}  nDCG@10 {ndcg(network, held_out):.4f}")
    seconds = time.perf_counter() - start
    np.savez("network.npz", *network.parameters())
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
