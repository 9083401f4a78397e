import argparse
import time
import warnings
from pathlib import Path

import lightning.pytorch as pl
import numpy as np
import torch
from bucket import SHAPE, download, mirror, open_bucket
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    def __init__(self, source, count):
        self.source = source
        self.count = count

    def __len__(self):
        return self.count

    def read(self, index):
        if isinstance(self.source, Path):
            return (self.source / f"{index}.bin").read_bytes()
        return download(f"{self.source}/{index}")

    def __getitem__(self, index):
        tile = np.frombuffer(self.read(index), dtype=np.float32).reshape(SHAPE).copy()
        return torch.from_numpy(tile), float(tile[3].mean())


class TileData(pl.LightningDataModule):
    def __init__(self, source, count, batch_size=16):
        super().__init__()
        self.dataset = Tiles(source, count)
        self.batch_size = batch_size

    def train_dataloader(self):
        return DataLoader(
            self.dataset,
            batch_size=self.batch_size,
            shuffle=True,
            num_workers=2,
            persistent_workers=True,
        )


class CloudCover(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(4, 24, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(24, 48, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Conv2d(48, 48, 3, padding=1),
            nn.GELU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(48, 1)

    def forward(self, tiles):
        return self.head(self.encoder(tiles)).squeeze(1)

    def training_step(self, batch, batch_idx):
        tiles, cover = batch
        loss = nn.functional.smooth_l1_loss(self(tiles), cover.float())
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=5e-4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mirror", help="copy the tiles to this folder first")
    parser.add_argument("--tiles", type=int, default=960)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    pl.seed_everything(0)
    torch.set_num_threads(1)
    source = open_bucket()
    if args.mirror:
        source = mirror(source, args.tiles, args.mirror)
    trainer = pl.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(CloudCover(), datamodule=TileData(source, args.tiles))
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
