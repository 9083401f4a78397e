"""Segment synthetic rock samples point by point."""

import argparse
import time
import warnings

import lightning.pytorch as pl
import torch
from scores import Confusion, TensorConfusion
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class PointNet(pl.LightningModule):
    def __init__(self, confusion, classes=8):
        super().__init__()
        self.confusion = confusion
        self.layers = nn.Sequential(
            nn.Linear(16, 192), nn.ReLU(), nn.Linear(192, 192), nn.ReLU(), nn.Linear(192, classes)
        )

    def training_step(self, batch, batch_idx):
        points, labels = batch
        logits = self.layers(points)
        self.confusion.update(logits.detach(), labels)
        return nn.functional.cross_entropy(logits, labels)

    def on_train_epoch_end(self):
        print(f"accuracy {self.confusion.accuracy():.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensor-scores", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    pl.seed_everything(1)
    labels = torch.randint(0, 8, (122_880,))
    points = torch.randn(8, 16)[labels] + torch.randn(122_880, 16)
    loader = DataLoader(
        TensorDataset(points.view(-1, 2048, 16), labels.view(-1, 2048)),
        batch_size=None,
        shuffle=True,
    )
    trainer = pl.Trainer(
        max_epochs=6,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = PointNet((TensorConfusion if args.tensor_scores else Confusion)(8))
    start = time.perf_counter()
    trainer.fit(model, loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
