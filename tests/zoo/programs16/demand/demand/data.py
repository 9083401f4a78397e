import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


def make_series(count, history, horizon, seed):
    generator = torch.Generator().manual_seed(seed)
    t = torch.arange(history + horizon, dtype=torch.float32)
    phase = torch.rand(count, 1, generator=generator) * 6.28
    level = torch.rand(count, 1, generator=generator) * 3
    series = (
        level
        + torch.sin(t / 7 * 6.28 + phase)
        + 0.2 * torch.randn(count, len(t), generator=generator)
    )
    return series[:, :history].unsqueeze(2), series[:, history:]


class DemandData(L.LightningDataModule):
    def __init__(self, train=5760, validation=1920, history=56, horizon=14, batch_size=48):
        super().__init__()
        self.batch_size = batch_size
        self.train_set = TensorDataset(*make_series(train, history, horizon, 1))
        self.validation_set = TensorDataset(*make_series(validation, history, horizon, 2))

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.validation_set, batch_size=self.batch_size)
