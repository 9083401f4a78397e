"""Homework 3: train a multilayer perceptron on the forest-cover table."""

import argparse
import time

import torch
from torch import nn

torch.set_num_threads(1)


class MyAdam:
    def __init__(self, params, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8, weight_decay=1e-4):
        self.params = list(params)
        self.lr, self.b1, self.b2, self.eps, self.wd = lr, b1, b2, eps, weight_decay
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]
        self.t = 0

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        self.t += 1
        for i, p in enumerate(self.params):
            g = p.grad + self.wd * p
            self.m[i] = self.b1 * self.m[i] + (1 - self.b1) * g
            self.v[i] = self.b2 * self.v[i] + (1 - self.b2) * g**2
            m_hat = self.m[i] / (1 - self.b1**self.t)
            v_hat = self.v[i] / (1 - self.b2**self.t)
            p -= self.lr * m_hat / (torch.sqrt(v_hat) + self.eps)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=200)
    ap.add_argument("--adam", choices=["mine", "torch"], default="mine")
    args = ap.parse_args()
    torch.manual_seed(0)
    x = torch.randn(8192, 54)
    y = torch.randint(0, 7, (8192,))
    model = nn.Sequential(
        nn.Linear(54, 800),
        nn.ReLU(),
        nn.Linear(800, 800),
        nn.ReLU(),
        nn.Linear(800, 800),
        nn.ReLU(),
        nn.Linear(800, 7),
    )
    if args.adam == "mine":
        opt = MyAdam(model.parameters())
    else:
        opt = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4, fused=True)
    start = time.perf_counter()
    for step in range(args.steps):
        idx = torch.randint(0, len(x), (128,))
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
