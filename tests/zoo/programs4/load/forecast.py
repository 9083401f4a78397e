"""Forecast of the load of a grid, with Lightning."""

import argparse
import time
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

warnings.filterwarnings("ignore")


class Windows(Dataset):
    def __init__(self, n_hours, history=168, horizon=24):
        g = torch.Generator().manual_seed(0)
        t = torch.arange(n_hours)
        daily = torch.sin(2 * torch.pi * t / 24) + 0.4 * torch.sin(2 * torch.pi * t / 168)
        self.series = daily + 0.2 * torch.randn(n_hours, generator=g)
        self.history, self.horizon = history, horizon

    def __len__(self):
        return len(self.series) - self.history - self.horizon

    def __getitem__(self, i):
        middle = i + self.history
        return self.series[i:middle], self.series[middle : middle + self.horizon]


class Forecaster(L.LightningModule):
    def __init__(self, history=168, horizon=24, dim=96, quantiles=(0.1, 0.5, 0.9)):
        super().__init__()
        self.quantiles = quantiles
        self.patch = nn.Linear(24, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.out = nn.Linear(dim * history // 24, horizon * len(quantiles))

    def forward(self, past):
        h = self.encoder(self.patch(past.unflatten(1, (-1, 24))))
        return self.out(h.flatten(1)).unflatten(1, (-1, len(self.quantiles)))

    def pinball(self, batch):
        past, future = batch
        error = future[..., None] - self(past)
        q = torch.tensor(self.quantiles)
        return torch.maximum(q * error, (q - 1) * error).mean()

    def training_step(self, batch, batch_idx):
        loss = self.pinball(batch)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.pinball(batch))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--hours", type=int, default=11500)
    p.add_argument("--epochs", type=int, default=2)
    args = p.parse_args()
    L.seed_everything(4)
    torch.set_num_threads(1)
    windows = Windows(args.hours)
    held_out = len(windows) // 20
    train, val = random_split(windows, [len(windows) - held_out, held_out])
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=args.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
    )
    model = Forecaster()
    start = time.perf_counter()
    trainer.fit(model, DataLoader(train, 64, shuffle=True), DataLoader(val, 128))
    seconds = time.perf_counter() - start
    print(f"val loss {trainer.callback_metrics['val_loss']:.5f}")
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
