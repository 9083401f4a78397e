"""A network trained in double precision, as data from NumPy often are, or in single precision.

    stepwatch run --memory examples/claims/precision.py
    stepwatch run --memory examples/claims/precision.py --dtype float32

Single precision is the change that the report of the first run advises. The section "training" has
all that the training itself allocates: data, parameters, gradients, what Adam keeps.
"""

from __future__ import annotations

import argparse

import stepwatch
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    """Read the options and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()

    # torch imports what optimizers need with the first one: that is no memory of the training.
    torch.optim.Adam([torch.zeros(1, requires_grad=True)]).step()
    train(getattr(torch, options.dtype), options.steps)


@stepwatch.profile("training")
def train(dtype: torch.dtype, steps: int) -> None:
    """Train for so many steps."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    inputs = torch.empty(25_600, 1024, dtype=dtype).normal_()
    targets = inputs[:, :8].sum(1, keepdim=True)
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=128, shuffle=True)
    model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)).to(dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    while step < steps:
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            step += 1
            if step == steps:
                break
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
