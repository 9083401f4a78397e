"""Crops of supermarket shelves with a product label each."""

import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from .config import ShelfConfig


def random_crop(image, size, rng):
    top = rng.integers(0, image.shape[0] - size)
    left = rng.integers(0, image.shape[1] - size)
    return image[top : top + size, left : left + size]


def colour_jitter(image, rng):
    gain = rng.uniform(0.8, 1.2, size=3).astype(np.float32)
    bias = rng.uniform(-12, 12, size=3).astype(np.float32)
    return np.clip(image * gain + bias, 0, 255)


def soft_focus(image):
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="edge")
    rows = 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
    return 0.25 * rows[:, :-2] + 0.5 * rows[:, 1:-1] + 0.25 * rows[:, 2:]


def sensor_noise(image, rng):
    return image + rng.standard_normal(image.shape, dtype=np.float32) * 3.0


def halve(image):
    return 0.25 * (image[::2, ::2] + image[1::2, ::2] + image[::2, 1::2] + image[1::2, 1::2])


class ShelfDataset(Dataset):
    def __init__(self, cfg: ShelfConfig):
        rng = np.random.default_rng(cfg.seed)
        self.cfg = cfg
        self.photos = rng.integers(
            0, 256, size=(256, cfg.source_size, cfg.source_size, 3), dtype=np.uint8
        )
        self.labels = rng.integers(0, cfg.classes, size=256)

    def __len__(self):
        return self.cfg.images

    def __getitem__(self, index):
        rng = np.random.default_rng(self.cfg.seed + index)
        image = random_crop(self.photos[index % 256], self.cfg.crop_size, rng).astype(np.float32)
        if rng.random() < 0.5:
            image = image[:, ::-1]
        image = colour_jitter(image, rng)
        image = soft_focus(image)
        image = sensor_noise(image, rng)
        image = halve(image)
        image = (image - 127.5) / 64.0
        return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))), int(
            self.labels[index % 256]
        )


class ShelfData(L.LightningDataModule):
    def __init__(self, cfg: ShelfConfig):
        super().__init__()
        self.cfg = cfg

    def setup(self, stage=None):
        self.train = ShelfDataset(self.cfg)

    def train_dataloader(self):
        workers = self.cfg.num_workers
        return DataLoader(
            self.train,
            batch_size=self.cfg.batch_size,
            shuffle=True,
            num_workers=workers,
            persistent_workers=workers > 0,
        )
