"""A training on a GPU that reads the loss after every step, so that the GPU waits for the host.

    stepwatch run examples/claims/gpu.py
    stepwatch run examples/claims/gpu.py --read-seldom

With --read-seldom the loss stays on the GPU and is read every hundred steps: the change that the
report of the first run advises.
"""

from __future__ import annotations

import argparse

import torch
from torch import nn


def main() -> None:
    """Train for some steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--is-there", action="store_true", help="say whether there is a GPU")
    parser.add_argument("--read-seldom", action="store_true")
    parser.add_argument("--steps", type=int, default=1500)
    options = parser.parse_args()
    if options.is_there:
        print("yes" if torch.cuda.is_available() else "no")
        return

    torch.manual_seed(0)
    model = nn.Sequential(
        *(layer for _ in range(6) for layer in (nn.Linear(1024, 1024), nn.ReLU())),
        nn.Linear(1024, 10),
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(4096, 1024, device="cuda")
    labels = torch.randint(0, 10, (4096,), device="cuda")
    history = []
    for step in range(options.steps):
        optimizer.zero_grad()
        losses = nn.functional.cross_entropy(model(inputs), labels, reduction="none")
        loss = losses.mean()
        loss.backward()
        optimizer.step()
        if options.read_seldom:
            if step % 100 == 0:
                history.append(loss.item())
        else:
            # What is worth knowing of the losses, one number after the other.
            part = losses.detach().view(256, -1)
            history.append(sum(row.mean().item() for row in part) / 256)
    print(f"loss {history[-1]:.4f}")


if __name__ == "__main__":
    main()
