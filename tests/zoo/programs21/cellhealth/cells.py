import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset


def charging_curves(count, points, seed):
    """Voltage, current and temperature while charging, and the capacity that is left."""
    rng = np.random.default_rng(seed)
    health = rng.uniform(0.6, 1.0, (count, 1))
    t = np.linspace(0, 1, points)
    knee = 0.75 * health + rng.normal(0, 0.02, (count, 1))
    voltage = 3.2 + 0.9 / (1 + np.exp(-6 * (t - 0.4 * knee))) + 0.05 * t
    current = np.where(t < knee, 1.0, np.exp(-8 * (t - knee)))
    heat = 25 + 9 * (1.2 - health) * np.sin(np.pi * t) + rng.normal(0, 1, (count, 1))
    x = np.stack([voltage - 3.8, current - 0.6, (heat - 27) / 5], 1)
    x += rng.normal(0, 0.02, x.shape)
    return torch.from_numpy(x).float(), torch.from_numpy(health[:, 0]).float()


class CellData(L.LightningDataModule):
    def __init__(self, count=2560, points=128, batch_size=64):
        super().__init__()
        self.count = count
        self.points = points
        self.batch_size = batch_size

    def setup(self, stage=None):
        self.train = TensorDataset(*charging_curves(self.count, self.points, seed=1))
        self.val = TensorDataset(*charging_curves(256, self.points, seed=2))

    def train_dataloader(self):
        return DataLoader(self.train, self.batch_size, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.val, 128)
