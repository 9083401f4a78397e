"""Fill in what clouds hide of the sea surface temperature."""

import argparse
import time

import lightning
import numpy as np
import torch
from fields import Fields, standardize
from torch import nn
from torch.utils.data import DataLoader


class Inpainter(lightning.LightningModule):
    def __init__(self, prepare=None):
        super().__init__()
        self.prepare = prepare
        self.rng = np.random.default_rng(0)
        self.net = nn.Sequential(
            nn.Conv2d(2, 24, 6, stride=2, padding=2),
            nn.SiLU(),
            nn.Conv2d(24, 24, 3, padding=1),
            nn.SiLU(),
            nn.Conv2d(24, 24, 3, padding=1),
            nn.SiLU(),
            nn.ConvTranspose2d(24, 1, 4, stride=2, padding=1),
        )

    def training_step(self, batch, _):
        if self.prepare is not None:
            made = [self.prepare(field, self.rng) for field in batch.numpy()]
            batch = torch.from_numpy(np.stack(made))
        seen, truth = batch[:, :2], batch[:, 2:]
        return nn.functional.mse_loss(self.net(seen), truth)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--standardize", choices=["model", "dataset"], default="model")
    args = parser.parse_args()
    lightning.seed_everything(0, verbose=False)
    torch.set_num_threads(1)

    early = args.standardize == "dataset"
    fields = Fields(3200, standardize if early else None)
    loader = DataLoader(fields, batch_size=16, shuffle=True, num_workers=2, drop_last=True)
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    begin = time.perf_counter()
    trainer.fit(Inpainter(None if early else standardize), loader)
    took = time.perf_counter() - begin
    print(f"trained {trainer.global_step} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
