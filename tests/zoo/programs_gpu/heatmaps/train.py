"""Find points in images: a small network that gives heat maps."""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from torch import nn

POINTS = 17


def pixel_errors(heat: torch.Tensor, truth: torch.Tensor) -> float:
    """Return how far the peaks lie from the truth, on average."""
    maps = heat.detach().float().cpu().numpy()
    places = truth.cpu().numpy()
    flat = maps.reshape(maps.shape[0], maps.shape[1], -1).argmax(-1)
    found = np.stack([flat // maps.shape[-1], flat % maps.shape[-1]], axis=-1)
    return float(np.sqrt(((found - places) ** 2).sum(-1)).mean())


def pixel_errors_there(heat: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Return the same without leaving the device."""
    flat = heat.detach().flatten(2).argmax(-1)
    found = torch.stack([flat // heat.shape[-1], flat % heat.shape[-1]], dim=-1)
    return (found - truth).float().pow(2).sum(-1).sqrt().mean()


class Trainer:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.device = torch.device("cuda")
        self.model = nn.Sequential(
            nn.Conv2d(3, 48, 5, padding=2),
            nn.ReLU(),
            nn.Conv2d(48, 48, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(48, POINTS, 1),
        ).to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)
        self.images = torch.randn(64, 3, 128, 128, device=self.device)
        self.truth = torch.randint(0, 128, (64, POINTS, 2), device=self.device)
        self.errors: list[float | torch.Tensor] = []

    def step(self) -> None:
        index = torch.randint(0, 64, (32,), device=self.device)
        truth = self.truth[index]
        with torch.autocast("cuda", dtype=torch.bfloat16):
            heat = self.model(self.images[index])
        place = truth[..., 0] * 128 + truth[..., 1]
        loss = nn.functional.cross_entropy(heat.float().flatten(2).flatten(0, 1), place.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.args.errors == "host":
            self.errors.append(pixel_errors(heat, truth))
        else:
            self.errors.append(pixel_errors_there(heat, truth))

    def fit(self) -> None:
        for _ in range(self.args.steps):
            self.step()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--errors", choices=["host", "device"], default="host")
    args = parser.parse_args()
    torch.manual_seed(0)
    trainer = Trainer(args)
    begin = time.perf_counter()
    trainer.fit()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    print(f"error {float(trainer.errors[-1]):.2f} pixels")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
