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
torch.set_num_threads(1)


class LitCifar(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(64 * 64, 10),
        )

    def training_step(self, batch, i):
        x, y = batch
        return F.cross_entropy(self.model(x), y)

    def validation_step(self, batch, i):
        x, y = batch
        acc = (self.model(x).argmax(1) == y).float().mean()
        self.log("val_acc", acc)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)

    def on_train_start(self):
        self.t0 = time.perf_counter()

    def on_train_end(self):
        self.took = time.perf_counter() - self.t0


def blobs(n):
    return TensorDataset(torch.rand(n, 3, 32, 32), torch.randint(0, 10, (n,)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--val-every", type=int, default=10)
    args = parser.parse_args()
    L.seed_everything(1)
    train = DataLoader(blobs(args.steps * 24), batch_size=24, shuffle=True)
    val = DataLoader(blobs(480), batch_size=24)
    lit = LitCifar()
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        val_check_interval=args.val_every,
    )
    trainer.fit(lit, train, val)
    print(f"trained {trainer.global_step} steps in {lit.took:.3f} s")
