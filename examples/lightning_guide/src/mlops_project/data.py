"""Synthetic images: each class is a pattern of its own, with noise on it."""

from __future__ import annotations

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset


class Images(pl.LightningDataModule):
    """Images for training and a tenth as many for validation, made when the training begins."""

    def __init__(
        self,
        images: int = 9600,
        classes: int = 10,
        size: int = 32,
        subsample_percentage: float = 1.0,
        batch_size: int = 32,
        num_workers: int = 0,
    ) -> None:
        """Take how many there are, and the part of them that is used (0.1 is a tenth)."""
        super().__init__()
        if not 0 < subsample_percentage <= 1:
            raise SystemExit(
                f"data.subsample_percentage is {subsample_percentage}; it is a part of the images, "
                "more than 0 and at most 1."
            )
        self.count = max(batch_size, round(images * subsample_percentage))
        self.classes = classes
        self.size = size
        self.batch_size = batch_size
        self.num_workers = num_workers

    def setup(self, stage: str) -> None:
        """Make the images."""
        del stage
        random = torch.Generator().manual_seed(1)
        patterns = torch.randn(self.classes, 3, self.size, self.size, generator=random)

        def some(count: int) -> TensorDataset:
            labels = torch.randint(self.classes, (count,), generator=random)
            images = torch.randn(count, 3, self.size, self.size, generator=random)
            images += patterns[labels]
            return TensorDataset(images, labels)

        self.train = some(self.count)
        self.validation = some(max(self.batch_size, self.count // 10))

    def train_dataloader(self) -> DataLoader[tuple[torch.Tensor, ...]]:
        """Return the images to train on, in another order each epoch."""
        return DataLoader(
            self.train, batch_size=self.batch_size, num_workers=self.num_workers, shuffle=True
        )

    def val_dataloader(self) -> DataLoader[tuple[torch.Tensor, ...]]:
        """Return the images to validate on."""
        return DataLoader(
            self.validation, batch_size=4 * self.batch_size, num_workers=self.num_workers
        )
