"""Diabetic retinopathy grading, Lightning version of the old script."""

import argparse
import logging
import time
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Grader(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 24, 3, stride=2),
            nn.ReLU(),
            nn.Conv2d(24, 48, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(48, 64, 3),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, 5),
        )

    def training_step(self, batch, _):
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_acc", (self.net(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Clock(L.Callback):
    def on_train_start(self, trainer, module):
        self.start = time.perf_counter()

    def on_train_end(self, trainer, module):
        print(f"trained {trainer.global_step} steps in {time.perf_counter() - self.start:.3f} s")


def fundus(n, seed):
    g = torch.Generator().manual_seed(seed)
    return TensorDataset(
        torch.rand(n, 3, 56, 56, generator=g), torch.randint(0, 5, (n,), generator=g)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--val-every", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(13)
    torch.set_num_threads(1)
    trainer = L.Trainer(
        max_steps=100,
        val_check_interval=args.val_every,
        check_val_every_n_epoch=None,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[Clock()],
    )
    trainer.fit(
        Grader(),
        DataLoader(fundus(3200, 0), batch_size=32, shuffle=True),
        DataLoader(fundus(384, 1), batch_size=64),
    )
