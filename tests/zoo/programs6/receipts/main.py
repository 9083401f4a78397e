import argparse
import logging
import time
import warnings

import lightning as L
import torch
from torch import nn
from torch.nn import functional as F

from data import Receipts, threshold, threshold_by_block

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class LineReader(L.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.lr = lr
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d((3, 10)),
        )
        self.head = nn.Linear(32 * 30, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))

    def training_step(self, batch, _):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr)


class Clock(L.Callback):
    def on_train_start(self, trainer, pl_module):
        self.start = time.perf_counter()

    def on_train_end(self, trainer, pl_module):
        self.seconds = time.perf_counter() - self.start


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--reshape", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(5, verbose=False)
    clock = Clock()
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[clock],
    )
    trainer.fit(
        LineReader(), datamodule=Receipts(threshold if args.reshape else threshold_by_block)
    )
    print(f"trained {trainer.global_step} steps in {clock.seconds:.3f} s")
