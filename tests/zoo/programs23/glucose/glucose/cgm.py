"""Continuous glucose monitoring: five-minute readings with meals and insulin."""

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

CHANNELS = 3
PAST = 72
HORIZON = 12


def make_windows(count, seed):
    g = torch.Generator().manual_seed(seed)
    length = PAST + HORIZON
    meals = (torch.rand(count, length, generator=g) < 0.03).float() * 40
    insulin = (torch.rand(count, length, generator=g) < 0.03).float() * 5
    change = 0.4 * meals.cumsum(1).sin() - 0.3 * insulin + torch.randn(count, length, generator=g)
    level = 120 + change.cumsum(1)
    series = torch.stack([(level - 120) / 40, meals / 40, insulin / 5], dim=1)
    return TensorDataset(series[:, :, :PAST].contiguous(), series[:, 0, PAST:].contiguous())


def loader(count, batch_size, seed):
    dataset = make_windows(count, seed)
    batches = BatchSampler(RandomSampler(dataset), batch_size, drop_last=True)
    return DataLoader(dataset, sampler=batches, batch_size=None)
