"""Learn the energy of points on made-up orbits."""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from torch import nn


def make_orbits(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and speeds, and their energy."""
    rng = np.random.default_rng(seed)
    state = rng.normal(size=(count, 32))
    energy = 0.5 * (state[:, 16:] ** 2).sum(1) - 1 / (0.1 + (state[:, :16] ** 2).sum(1))
    return state, energy[:, None]


class Energy(nn.Module):
    def __init__(self, width: int = 2048) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.Linear(32, width), *(nn.Linear(width, width) for _ in range(5))]
        )
        self.last = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.last(x)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--single", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    device = torch.device("cuda")
    states, energies = make_orbits(40_000, 5)
    if args.single:
        states, energies = states.astype(np.float32), energies.astype(np.float32)
    x = torch.from_numpy(states).to(device)
    y = torch.from_numpy(energies).to(device)
    model = Energy().to(device=device, dtype=x.dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    criterion = nn.SmoothL1Loss()
    begin = time.perf_counter()
    for _ in range(args.steps):
        index = torch.randint(0, len(x), (8192,), device=device)
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.4f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
