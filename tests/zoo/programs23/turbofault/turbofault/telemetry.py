"""Sensor windows of gas turbines with a fault code each."""

import torch
from torch.utils.data import TensorDataset

CHANNELS = 14
WINDOW = 120
FAULTS = 12


def make_windows(count: int, seed: int) -> TensorDataset:
    g = torch.Generator().manual_seed(seed)
    faults = torch.randint(0, FAULTS, (count,), generator=g)
    phase = torch.rand(count, CHANNELS, 1, generator=g) * 6.28
    t = torch.linspace(0, 12, WINDOW)
    windows = torch.sin(t * (1 + faults.view(-1, 1, 1) * 0.2) + phase)
    windows += 0.3 * torch.randn(windows.shape, generator=g)
    return TensorDataset(windows, faults)
