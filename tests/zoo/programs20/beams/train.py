"""Question 16: faults in steel beams. From time to time the axes of the inputs are found anew."""

import argparse
import time

import torch
from torch import nn

FEATURES = 64


class Axes:
    """Principal axes of the measurements seen last."""

    def __init__(self, thin):
        self.thin = thin
        self.basis = torch.eye(FEATURES)
        self.scale = torch.ones(FEATURES)

    def refresh(self, rows):
        centred = rows - rows.mean(dim=0)
        if self.thin:
            _, sizes, axes = torch.linalg.svd(centred, full_matrices=False)
        else:
            _, sizes, axes = torch.linalg.svd(centred)
        self.basis = axes.T
        self.scale = sizes / len(rows) ** 0.5 + 1e-3

    def turn(self, rows):
        return rows @ self.basis / self.scale


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--thin", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(16)
    beams = torch.randn(4500, FEATURES) @ torch.randn(FEATURES, FEATURES)
    fault = (beams[:, 0] > 0).long() + (beams[:, 1] > 0).long()
    axes = Axes(args.thin)
    model = nn.Sequential(
        nn.Linear(FEATURES, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 3)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    start = time.perf_counter()
    for step in range(args.steps):
        if step % 10 == 5:
            axes.refresh(beams)
        chosen = torch.randint(0, len(beams), (512,))
        loss = nn.functional.cross_entropy(model(axes.turn(beams[chosen])), fault[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
