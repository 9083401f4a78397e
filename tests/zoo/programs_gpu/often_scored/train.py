"""An autoencoder for spectra that is scored while it learns."""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn


def score(model: nn.Module, held_out: torch.Tensor) -> float:
    model.eval()
    total = torch.zeros((), device=held_out.device)
    with torch.no_grad():
        for part in held_out.split(1024):
            total += nn.functional.mse_loss(model(part), part, reduction="sum")
    model.train()
    return total.item() / held_out.numel()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--score-every", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda")
    data = torch.randn(20_000, 1024, device=device)
    held_out = torch.randn(60_000, 1024, device=device)
    widths = [1024, 2048, 2048, 64, 2048, 2048, 1024]
    layers: list[nn.Module] = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    model = nn.Sequential(*layers[:-1]).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    best = float("inf")
    begin = time.perf_counter()
    for step in range(args.steps):
        batch = data[torch.randint(0, len(data), (1024,), device=device)]
        loss = nn.functional.mse_loss(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.score_every == args.score_every - 1:
            best = min(best, score(model, held_out))
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    print(f"best {best:.4f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
