import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Belt(Dataset):
    """Crops of a conveyor belt, mirrored at random."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.frames = rng.integers(0, 256, (60, 72, 72), dtype=np.uint8)
        self.grade = rng.random(count, dtype=np.float32)

    def __len__(self):
        return len(self.grade)

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        top, left = rng.integers(0, 8, 2)
        crop = self.frames[i % 60, top : top + 64, left : left + 64]
        if rng.random() < 0.5:
            crop = crop[:, ::-1]
        return torch.from_numpy(crop[None].astype(np.float32) / 255), self.grade[i]


class BeltData(L.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(Belt(2560, 1), 32, shuffle=True, num_workers=2, persistent_workers=True)

    def val_dataloader(self):
        return DataLoader(Belt(64, 2), 64)
