import torch
from torch.utils.data import DataLoader, TensorDataset

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl


class Scans(pl.LightningDataModule):
    def __init__(self, count=1600, batch_size=16, pixels=784):
        super().__init__()
        self.count, self.batch_size, self.pixels = count, batch_size, pixels

    def setup(self, stage=None):
        g = torch.Generator().manual_seed(0)
        x = torch.randn(self.count, self.pixels, generator=g)
        self.data = TensorDataset(x, (x[:, :8].sum(dim=1) > 0).long())

    def train_dataloader(self):
        return DataLoader(self.data, batch_size=self.batch_size, shuffle=True)
