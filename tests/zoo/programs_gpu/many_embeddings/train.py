"""Click prediction with an embedding for each of many features."""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn
from updates import Momentum

FEATURES = 400


class Clicks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        # One weight vector for each feature, as the ablations need them apart.
        self.weights = nn.ParameterList(
            nn.Parameter(torch.randn(16) * 0.1) for _ in range(FEATURES)
        )
        self.mlp = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mlp(x @ torch.stack(list(self.weights)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--optimizer", choices=["own", "torch"], default="own")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = Clicks().to(device)
    optimizer: torch.optim.Optimizer
    if args.optimizer == "own":
        optimizer = Momentum(model.parameters(), lr=0.01)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    criterion = nn.BCEWithLogitsLoss()
    begin = time.perf_counter()
    for _ in range(args.steps):
        x = torch.rand(512, FEATURES, device=device)
        y = (x[:, :1] > 0.5).float()
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.4f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
