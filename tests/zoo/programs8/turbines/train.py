"""Turbine power from the weather: a Lightning module and data module."""

import argparse
import logging
import time
import warnings

import lightning.pytorch as pl
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Weather(pl.LightningDataModule):
    def __init__(self, batch_size=64):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        x = torch.randn(4800, 48, 12)
        y = x[:, -6:, 0].clamp(-1, 2).pow(3).mean(1, keepdim=True)
        self.train, self.val = TensorDataset(x[:3840], y[:3840]), TensorDataset(x[3840:], y[3840:])

    def train_dataloader(self):
        return DataLoader(self.train, self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, self.batch_size)


class PowerCurve(pl.LightningModule):
    def __init__(self, hidden=80):
        super().__init__()
        self.rnn = nn.LSTM(12, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, 1)
        self.loss = nn.HuberLoss()

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])

    def training_step(self, batch, _):
        return self.loss(self(batch[0]), batch[1])

    def validation_step(self, batch, _):
        error = self.loss(self(batch[0]), batch[1])
        self.log("val_loss", error, prog_bar=False)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Stopwatch(pl.Callback):
    def on_train_start(self, *_):
        self.start = time.perf_counter()

    def on_train_end(self, *_):
        self.seconds = time.perf_counter() - self.start


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--val-check-interval", type=float, default=0.1)
    parser.add_argument("--max-epochs", type=int, default=2)
    args = parser.parse_args()
    pl.seed_everything(0, verbose=False)
    torch.set_num_threads(1)
    stopwatch = Stopwatch()
    early = pl.callbacks.EarlyStopping("val_loss", patience=100)
    trainer = pl.Trainer(
        max_epochs=args.max_epochs,
        val_check_interval=args.val_check_interval,
        num_sanity_val_steps=0,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[stopwatch, early],
    )
    trainer.fit(PowerCurve(), datamodule=Weather())
    print(f"val_loss {trainer.callback_metrics['val_loss'].item():.4f}")
    print(f"trained {trainer.global_step} steps in {stopwatch.seconds:.3f} s")
