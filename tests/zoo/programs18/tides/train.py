"""Water levels, six hours ahead. Lightning."""

import math
import time
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl

warnings.filterwarnings("ignore")


class TideNet(pl.LightningModule):
    def __init__(self, window=192):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(4, 64, 7, padding=3),
            nn.ReLU(),
            nn.Conv1d(64, 96, 7, padding=3, stride=2),
            nn.ReLU(),
            nn.Conv1d(96, 96, 7, padding=3, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(96 * window // 4, 6),
        )

    def training_step(self, batch, batch_idx):
        window, ahead = batch
        return nn.functional.mse_loss(self.net(window), ahead)

    def validation_step(self, batch, batch_idx):
        window, ahead = batch
        self.log("val_error", nn.functional.l1_loss(self.net(window), ahead))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3, momentum=0.9)


def windows(count):
    t = torch.arange(198.0) + 1000 * torch.rand(count, 4, 1)
    level = torch.sin(2 * math.pi * t / 12.4) + 0.2 * torch.randn(count, 4, 198)
    return TensorDataset(level[..., :192].contiguous(), level[:, 0, 192:].contiguous())


def main():
    torch.set_num_threads(1)
    pl.seed_everything(0)
    train = DataLoader(windows(1600), batch_size=32, shuffle=True)
    check = DataLoader(windows(64), batch_size=64)
    trainer = pl.Trainer(
        max_epochs=5,
        accelerator="cpu",
        devices=1,
        logger=False,
        num_sanity_val_steps=0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = TideNet()
    start = time.perf_counter()
    trainer.fit(model, train, check)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


main()
