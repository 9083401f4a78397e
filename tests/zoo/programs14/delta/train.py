"""River levels: a recurrent forecaster with Lightning, validated after each epoch."""

import logging
import time
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import LearningRateMonitor
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


def levels(count, seed):
    gen = torch.Generator().manual_seed(seed)
    series = torch.randn(count, 41, 8, generator=gen).cumsum(1) * 0.2
    return TensorDataset(series[:, :40], series[:, 40, :1])


class Forecaster(L.LightningModule):
    def __init__(self, hidden=160, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.rnn = nn.LSTM(8, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.mse_loss(self(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)]


def main():
    torch.set_num_threads(1)
    L.seed_everything(6, verbose=False)
    trainer = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=CSVLogger("logs"),
        log_every_n_steps=25,
        gradient_clip_val=1.0,
        num_sanity_val_steps=0,
        callbacks=[LearningRateMonitor("epoch")],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    train = DataLoader(levels(1200, 1), batch_size=20, shuffle=True)
    val = DataLoader(levels(160, 2), batch_size=40)
    model = Forecaster()
    start = time.perf_counter()
    trainer.fit(model, train, val)
    seconds = time.perf_counter() - start
    print(f"validation loss {trainer.callback_metrics['val_loss']:.4f}")
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
