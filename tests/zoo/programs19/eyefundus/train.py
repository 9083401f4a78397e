"""Vessels in pictures of the eye: segmentation with Lightning."""

import argparse
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


def pictures(count, side, seed):
    generator = torch.Generator().manual_seed(seed)
    phase = torch.rand(count, 1, 1, generator=generator) * 6
    y, x = torch.meshgrid(torch.linspace(0, 9, side), torch.linspace(0, 9, side), indexing="ij")
    vessel = (torch.sin(x + phase) * torch.cos(y - phase)).abs() < 0.15
    noise = torch.randn(count, 3, side, side, generator=generator)
    return TensorDataset(vessel[:, None].float() + 0.5 * noise, vessel.float())


class Vessels(pl.LightningModule):
    def __init__(self, width=40):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=2, dilation=2),
            nn.ReLU(),
            nn.Conv2d(width, 1, 1),
        )

    def forward(self, images):
        return self.net(images)[:, 0]

    def training_step(self, batch, _):
        images, vessels = batch
        return nn.functional.binary_cross_entropy_with_logits(self(images), vessels)

    def validation_step(self, batch, _):
        images, vessels = batch
        found = self(images) > 0
        dice = 2 * (found * vessels).sum() / (found.sum() + vessels.sum() + 1)
        self.log("dice", dice, on_epoch=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check-every", type=int, default=8)
    parser.add_argument("--steps", type=int, default=96)
    args = parser.parse_args()
    pl.seed_everything(12, verbose=False)
    torch.set_num_threads(1)
    trainer = pl.Trainer(
        max_steps=args.steps,
        val_check_interval=args.check_every,
        num_sanity_val_steps=0,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    train = DataLoader(pictures(args.steps * 8, 48, 1), 8, shuffle=True)
    held_out = DataLoader(pictures(192, 48, 2), 32)
    begin = time.perf_counter()
    trainer.fit(Vessels(), train, held_out)
    seconds = time.perf_counter() - begin
    print(f"dice {float(trainer.callback_metrics['dice']):.3f}")
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
