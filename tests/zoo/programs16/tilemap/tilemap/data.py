import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    """Satellite tiles with a mask of the buildings."""

    def __init__(self, count, size, seed):
        rng = np.random.default_rng(seed)
        self.tiles = rng.integers(0, 256, size=(count, 4, size, size), dtype=np.uint8)
        self.masks = (self.tiles[:, 3] > 200).astype(np.float32)

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, index):
        tile = torch.from_numpy(self.tiles[index]).float().div_(255.0)
        return tile, torch.from_numpy(self.masks[index])


class TileData(L.LightningDataModule):
    def __init__(self, batch_size=16, size=48):
        super().__init__()
        self.batch_size = batch_size
        self.train_set = Tiles(640, size, seed=1)
        self.val_set = Tiles(64, size, seed=2)

    def train_dataloader(self):
        return DataLoader(
            self.train_set,
            batch_size=self.batch_size,
            shuffle=True,
            num_workers=1,
            persistent_workers=True,
        )

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=self.batch_size)
