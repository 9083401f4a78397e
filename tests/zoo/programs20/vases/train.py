"""Question 30, Lightning: an autoencoder for the outlines of Greek vases."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl


class Vases(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 24, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 40, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(40, 24, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(24, 1, 4, stride=2, padding=1),
        )

    def training_step(self, batch, _):
        (outlines,) = batch
        loss = nn.functional.mse_loss(self.decoder(self.encoder(outlines)), outlines)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()
    torch.set_num_threads(1)
    pl.seed_everything(30)
    outlines = torch.rand(960, 1, 40, 40)
    loader = DataLoader(TensorDataset(outlines), batch_size=48, shuffle=True)
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=args.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(Vases(), loader)
    seconds = time.perf_counter() - start
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
