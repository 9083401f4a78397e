"""Distil a wide handwriting model into a narrow one."""

import argparse
import time

import distill
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, width, depth, pixels=400, features=128, classes=62):
        super().__init__()
        sizes = [pixels] + [width] * depth
        layers = []
        for a, b in zip(sizes, sizes[1:]):
            layers += [nn.Linear(a, b), nn.ReLU()]
        self.trunk = nn.Sequential(*layers)
        self.features = nn.Linear(width, features)
        self.classify = nn.Linear(features, classes)

    def forward(self, x):
        hidden = self.features(self.trunk(x))
        return self.classify(hidden), hidden


def glyphs(count=6000):
    return torch.rand(count, 400, generator=torch.Generator().manual_seed(40))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--terms", choices=["separate", "joint"], default="separate")
    parser.add_argument("--steps", type=int, default=160)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(41)
    teacher = Reader(640, 3).eval().requires_grad_(False)
    student = Reader(256, 2)
    objective = getattr(distill, args.terms)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
    data = glyphs()
    began = time.perf_counter()
    for step in range(args.steps):
        x = data[torch.randint(0, len(data), (256,))]
        optimizer.zero_grad()
        loss = objective(student, teacher, x)
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step} distillation {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
