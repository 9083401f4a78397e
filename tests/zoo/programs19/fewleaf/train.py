"""Few leaves, many epochs: a Lightning classifier on a small collection of leaf outlines."""

import argparse
import logging
import time
import warnings

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


class Leaves(Dataset):
    def __init__(self, count=160, side=40):
        rng = np.random.default_rng(8)
        self.labels = rng.integers(0, 8, count)
        y, x = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
        angle, radius = np.arctan2(y, x), np.hypot(x, y)
        lobes = self.labels[:, None, None] + 2
        self.images = (radius < 0.6 + 0.2 * np.cos(lobes * angle)).astype(np.float32)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        turned = np.rot90(self.images[index], np.random.randint(4)).copy()
        turned += np.random.normal(0, 0.1, turned.shape).astype(np.float32)
        return torch.from_numpy(turned)[None], int(self.labels[index])


class Herbarium(pl.LightningDataModule):
    def __init__(self, persistent):
        super().__init__()
        self.persistent = persistent

    def setup(self, stage):
        self.leaves = Leaves()

    def train_dataloader(self):
        return DataLoader(
            self.leaves,
            batch_size=16,
            shuffle=True,
            num_workers=2,
            persistent_workers=self.persistent,
        )


class Classifier(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 32, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(32, 40, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(40 * 20 * 20, 8),
        )

    def training_step(self, batch, _):
        images, labels = batch
        return nn.functional.cross_entropy(self.net(images), labels)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02, momentum=0.9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--epochs", type=int, default=24)
    args = parser.parse_args()
    pl.seed_everything(8, verbose=False)
    torch.set_num_threads(1)
    trainer = pl.Trainer(
        max_epochs=args.epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    begin = time.perf_counter()
    trainer.fit(Classifier(), datamodule=Herbarium(args.persistent))
    seconds = time.perf_counter() - begin
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
