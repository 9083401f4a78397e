"""Bags of plant names to habitats: a table of vectors and a hidden layer, in NumPy."""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import time

import numpy as np

NAMES, DIM, HIDDEN, HABITATS = 5000, 64, 768, 20
BATCH, BAG = 512, 24


class Model:
    def __init__(self, rng):
        f32 = np.float32
        self.table = rng.standard_normal((NAMES, DIM)).astype(f32) * f32(0.1)
        self.w1 = (rng.standard_normal((DIM, HIDDEN)) / 8).astype(f32)
        self.w2 = (rng.standard_normal((HIDDEN, HIDDEN)) / 28).astype(f32)
        self.w3 = (rng.standard_normal((HIDDEN, HABITATS)) / 28).astype(f32)

    def forward(self, bags):
        self.bags = bags
        self.h0 = self.table[bags].mean(1)
        self.h1 = np.maximum(self.h0 @ self.w1, 0)
        self.h2 = np.maximum(self.h1 @ self.w2, 0)
        return self.h2 @ self.w3

    def backward(self, grad):
        dw3 = self.h2.T @ grad
        grad = (grad @ self.w3.T) * (self.h2 > 0)
        dw2 = self.h1.T @ grad
        grad = (grad @ self.w2.T) * (self.h1 > 0)
        dw1 = self.h0.T @ grad
        return dw1, dw2, dw3, grad @ self.w1.T


def add_rows(table, bags, grad, rate):
    for bag, row in zip(bags, grad):
        for name in bag:
            table[name] -= rate * row / len(bag)


def add_sorted(table, bags, grad, rate):
    flat = bags.ravel()
    order = np.argsort(flat, kind="stable")
    names, first = np.unique(flat[order], return_index=True)
    rows = grad[order // bags.shape[1]]
    table[names] -= np.float32(rate / bags.shape[1]) * np.add.reduceat(rows, first, axis=0)


def loss_and_grad(scores, wanted):
    scores = scores - scores.max(1, keepdims=True)
    share = np.exp(scores)
    share /= share.sum(1, keepdims=True)
    rows = np.arange(len(wanted))
    loss = -np.log(share[rows, wanted] + 1e-9).mean()
    share[rows, wanted] -= 1
    return loss, share / np.float32(len(wanted))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scatter", choices=["rows", "sorted"], default="rows")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    scatter = add_rows if args.scatter == "rows" else add_sorted
    rng = np.random.default_rng(16)
    model = Model(rng)
    begin = time.perf_counter()
    for step in range(args.steps):
        bags = rng.integers(0, NAMES, (BATCH, BAG))
        loss, grad = loss_and_grad(model.forward(bags), bags[:, 0] % HABITATS)
        dw1, dw2, dw3, dh = model.backward(grad)
        for weight, change in ((model.w1, dw1), (model.w2, dw2), (model.w3, dw3)):
            weight -= np.float32(0.1) * change
        scatter(model.table, bags, dh, 0.1)
        if step % 40 == 0:
            print(f"{step:4d} {loss:.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - begin:.3f} s")
