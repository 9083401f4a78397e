import torch
from torch.utils.data import TensorDataset

COLUMNS = 96


def claims(count, seed):
    """Standardised columns of motor claims and the logarithm of what each cost."""
    generator = torch.Generator().manual_seed(seed)
    columns = torch.randn(count, COLUMNS, generator=generator)
    weights = torch.randn(COLUMNS, generator=generator) / COLUMNS**0.5
    cost = columns @ weights + 0.3 * (columns[:, 0] * columns[:, 1])
    return TensorDataset(columns, cost + 0.1 * torch.randn(count, generator=generator))
