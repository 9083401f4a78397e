"""Predict the next value of many series with a recurrent network."""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn


class OwnGRU(nn.Module):
    """One gate after the other, one moment after the other."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.update_x = nn.Linear(inputs, width)
        self.update_h = nn.Linear(width, width)
        self.reset_x = nn.Linear(inputs, width)
        self.reset_h = nn.Linear(width, width)
        self.new_x = nn.Linear(inputs, width)
        self.new_h = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = x.new_zeros(len(x), self.width)
        outputs = []
        for t in range(x.shape[1]):
            now = x[:, t]
            update = torch.sigmoid(self.update_x(now) + self.update_h(hidden))
            reset = torch.sigmoid(self.reset_x(now) + self.reset_h(hidden))
            new = torch.tanh(self.new_x(now) + reset * self.new_h(hidden))
            hidden = (1 - update) * new + update * hidden
            outputs.append(hidden)
        return torch.stack(outputs, 1)


class LibraryGRU(nn.Module):
    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.inside = nn.GRU(inputs, width, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inside(x)[0]


class Forecaster(nn.Module):
    def __init__(self, recurrent: nn.Module, width: int) -> None:
        super().__init__()
        self.recurrent = recurrent
        self.head = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(x))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--cell", choices=["own", "library"], default="own")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    series = torch.randn(4096, 97, 4, device=device).cumsum(1)
    kind = OwnGRU if args.cell == "own" else LibraryGRU
    model = Forecaster(kind(4, 128), 128).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    begin = time.perf_counter()
    for _ in range(args.steps):
        batch = series[torch.randint(0, 4096, (128,), device=device)]
        loss = nn.functional.mse_loss(model(batch[:, :-1]), batch[:, 1:, :1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.4f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
