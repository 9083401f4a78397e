"""Hourly output of solar plants, and the windows a forecast is learned from."""

import torch

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
)

PAST, AHEAD = 96, 24


def simulate(plants, hours, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(hours)
    sun = torch.clamp(torch.sin((t % 24 - 6) * torch.pi / 12), min=0)
    clouds = torch.rand(plants, hours, generator=g).cumsum(1).sin().abs()
    return sun * (1 - 0.6 * clouds)


def windows(output, count, seed):
    g = torch.Generator().manual_seed(seed)
    plants, hours = output.shape
    plant = torch.randint(0, plants, (count, 1), generator=g)
    begin = torch.randint(0, hours - PAST - AHEAD, (count, 1), generator=g)
    cut = output[plant, begin + torch.arange(PAST + AHEAD)]
    return TensorDataset(cut[:, :PAST].contiguous(), cut[:, PAST:].contiguous())


class PlantData(pl.LightningDataModule):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        output = simulate(plants=40, hours=2000, seed=8)
        self.train = windows(output[:32], 70 * self.batch_size, seed=1)
        self.val = windows(output[32:], 10 * self.batch_size, seed=2)

    def loader(self, dataset, sampler):
        batches = BatchSampler(sampler, self.batch_size, drop_last=True)
        return DataLoader(dataset, sampler=batches, batch_size=None)

    def train_dataloader(self):
        return self.loader(self.train, RandomSampler(self.train))

    def val_dataloader(self):
        return self.loader(self.val, SequentialSampler(self.val))
