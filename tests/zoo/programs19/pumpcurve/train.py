"""Wear of pumps from their vibration, with Lightning."""

import logging
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
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


def vibrations(count):
    generator = torch.Generator().manual_seed(120)
    wear = torch.rand(count, generator=generator)
    t = torch.linspace(0, 60, 256)
    signal = torch.sin(t * (1 + wear[:, None]))[:, None].repeat(1, 4, 1)
    signal += 0.2 * torch.randn(count, 4, 256, generator=generator)
    return TensorDataset(signal, wear)


class Wear(pl.LightningModule):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(4, width, 7, padding=3),
            nn.ReLU(),
            nn.Conv1d(width, width, 7, padding=3),
            nn.ReLU(),
            nn.Conv1d(width, width, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            nn.Linear(width, 1),
        )

    def training_step(self, batch, _):
        signal, wear = batch
        loss = nn.functional.mse_loss(self.net(signal)[:, 0], wear)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    pl.seed_everything(120, verbose=False)
    torch.set_num_threads(1)
    trainer = pl.Trainer(
        max_epochs=5,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    begin = time.perf_counter()
    trainer.fit(Wear(), DataLoader(vibrations(40 * 32), 32, shuffle=True))
    seconds = time.perf_counter() - begin
    print(f"loss {float(trainer.callback_metrics['loss']):.4f}")
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
