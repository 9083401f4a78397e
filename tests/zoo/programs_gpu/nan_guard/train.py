"""A residual network on tabular rows, guarded against broken gradients."""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """Two layers and a way around them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


def build(width: int = 512, depth: int = 12) -> nn.Module:
    return nn.Sequential(
        nn.Linear(96, width), *(Block(width) for _ in range(depth)), nn.Linear(width, 1)
    )


def gradients_are_fine(model: nn.Module) -> bool:
    """Look at each gradient, so that one bad batch does not ruin the run."""
    for parameter in model.parameters():
        if parameter.grad is None:
            continue
        if torch.isnan(parameter.grad).any() or torch.isinf(parameter.grad).any():
            return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--guard", choices=["each", "norm"], default="each")
    args = parser.parse_args()
    torch.manual_seed(3)
    device = torch.device("cuda")
    rows = torch.randn(60_000, 96, device=device)
    target = rows[:, :8].sum(1, keepdim=True).tanh()
    model = build().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    skipped = 0
    begin = time.perf_counter()
    for _ in range(args.steps):
        index = torch.randint(0, len(rows), (2048,), device=device)
        loss = F.mse_loss(model(rows[index]), target[index])
        optimizer.zero_grad()
        loss.backward()
        if args.guard == "norm":
            # Stays on the device: broken gradients become small ones.
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        elif gradients_are_fine(model):
            optimizer.step()
        else:
            skipped += 1
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.4f}, {skipped} batches skipped")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
