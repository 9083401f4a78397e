"""Lightning with a validation set that is looked at very often."""

import argparse
import time
import warnings

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU()
        )
        self.head = nn.Linear(32 * 8 * 8, 4)

    def forward(self, x):
        return self.head(self.conv(x).flatten(1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("accuracy", (self(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


def pictures(count, seed):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (count,), generator=generator)
    x = torch.randn(count, 1, 20, 20, generator=generator) + y[:, None, None, None] * 0.3
    return TensorDataset(x, y)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--val-check-interval", type=int, default=15)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    pl.seed_everything(0)
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        val_check_interval=args.val_check_interval,
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    train_loader = DataLoader(pictures(150 * 32, 0), batch_size=32)
    val_loader = DataLoader(pictures(640, 1), batch_size=64)
    start = time.perf_counter()
    trainer.fit(Classifier(), train_loader, val_loader)
    print(f"accuracy {trainer.callback_metrics['accuracy']:.3f}")
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
