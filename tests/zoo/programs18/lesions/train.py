"""Lesion masks, Lightning module with the counts that the doctors want to see."""

import argparse
import time
import warnings

import torch
from metrics import lesion_count
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl


class LesionNet(pl.LightningModule):
    def __init__(self, count_every):
        super().__init__()
        self.count_every = count_every
        self.net = nn.Sequential(
            nn.Conv2d(1, 20, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(20, 20, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(20, 1, 1),
        )
        self.loss = nn.BCEWithLogitsLoss()

    def training_step(self, batch, batch_idx):
        scan, mask = batch
        out = self.net(scan)
        loss = self.loss(out, mask)
        if batch_idx % self.count_every == 0:
            found = out.detach().sigmoid().squeeze(1).numpy()
            self.log("lesions", lesion_count(found))
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


def scans(count, side):
    g = torch.Generator().manual_seed(4)
    coarse = torch.randn(count, 1, side // 6, side // 6, generator=g)
    field = nn.functional.interpolate(coarse, size=(side, side), mode="bilinear")
    mask = (field > 0.6).float()
    return TensorDataset(field + 0.3 * torch.randn(field.shape, generator=g), mask)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count-every", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    pl.seed_everything(0)
    loader = DataLoader(scans(800, 48), batch_size=10, shuffle=True)
    trainer = pl.Trainer(
        max_epochs=3,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(LesionNet(args.count_every), loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
