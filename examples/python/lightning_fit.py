"""A small Lightning training on synthetic data.

stepwatch run examples/python/lightning_fit.py          # unchanged
python examples/python/lightning_fit.py --profiler      # with stepwatch.lightning.Profiler
"""

from __future__ import annotations

import argparse
from typing import Any

import lightning.pytorch as pl
import stepwatch
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(pl.LightningModule):
    """Two convolutions and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        )
        self.head = nn.Linear(16, 10)

    def forward(self, images: torch.Tensor) -> Any:
        return self.head(self.features(images).flatten(1))

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], _: int) -> torch.Tensor:
        images, labels = batch
        return nn.functional.cross_entropy(self(images), labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profiler", action="store_true", help="record with Lightning's profiler")
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    data = TensorDataset(torch.randn(512, 1, 28, 28), torch.randint(0, 10, (512,)))
    trainer = pl.Trainer(
        max_epochs=options.epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        profiler=stepwatch.lightning.Profiler() if options.profiler else None,
    )
    trainer.fit(Classifier(), DataLoader(data, batch_size=16))


if __name__ == "__main__":
    main()
