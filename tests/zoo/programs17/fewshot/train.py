"""Keyword spotting on a small set of recordings, Lightning."""

import argparse
import logging
import time
import warnings

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_num_threads(1)


class Recordings(Dataset):
    def __init__(self, path, n):
        self.path, self.n, self.data = path, n, None

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if self.data is None:
            self.data = np.load(self.path)["waves"]
        return torch.from_numpy(self.data[i]), i % 10


class Spotter(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, 32, 16, stride=4),
            nn.ReLU(),
            nn.Conv1d(32, 32, 8, stride=2),
            nn.BatchNorm1d(32),
            nn.ReLU(),
            nn.Conv1d(32, 64, 8, stride=2),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            nn.Linear(64, 10),
        )

    def training_step(self, batch, _):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x.unsqueeze(1)), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Clock(L.Callback):
    def on_train_start(self, trainer, module):
        self.began = time.perf_counter()

    def on_train_end(self, trainer, module):
        self.took = time.perf_counter() - self.began


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--keep", action="store_true")
    a = ap.parse_args()
    L.seed_everything(0)
    per_epoch, batch = 4, 16
    n = per_epoch * batch
    waves = (
        np.random.default_rng(0).normal(0, 3000, (n, 8000)).astype(np.int16).astype(np.float32)
        / 32768
    )
    np.savez_compressed("waves.npz", waves=waves)
    loader = DataLoader(
        Recordings("waves.npz", n),
        batch_size=batch,
        shuffle=True,
        num_workers=2,
        persistent_workers=a.keep,
    )
    clock = Clock()
    trainer = L.Trainer(
        max_epochs=a.epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[clock],
    )
    trainer.fit(Spotter(), loader)
    print(f"trained {trainer.global_step} steps in {clock.took:.3f} s")
