"""What the tests of guide 1 profile."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset


class Sleeps(Dataset[Any]):
    """Samples that take their time."""

    def __init__(self, seconds: float, count: int = 4096) -> None:
        self.seconds, self.count = seconds, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.seconds)
        return torch.full((3,), float(index)), index % 3


def small_model() -> Any:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3))


def points(count: int = 96) -> Any:
    generator = torch.Generator().manual_seed(5)
    return TensorDataset(
        torch.randn(count, 3, generator=generator), torch.arange(count, dtype=torch.int64) % 3
    )
