"""A physics-informed network: somebody set the precision to be on the safe side."""

import argparse
import time
import warnings

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Heat(Dataset):
    def __init__(self, count):
        self.points = torch.rand(count, 3, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.points)

    def __getitems__(self, indices):
        points = self.points[indices]
        heat = torch.exp(-points[:, 2:]) * torch.sin(6 * points[:, :1]) * points[:, 1:2]
        return points, heat


class Field(pl.LightningModule):
    def __init__(self, width=512):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(3, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 1),
        )

    def training_step(self, batch, batch_idx):
        points, heat = batch
        return nn.functional.mse_loss(self.net(points), heat)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", default="64-true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    pl.seed_everything(0)
    loader = DataLoader(Heat(61_440), batch_size=256, collate_fn=lambda batch: batch)
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        precision=args.precision,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(Field(), loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
