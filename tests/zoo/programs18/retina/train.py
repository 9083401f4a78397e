"""python train.py [config overrides such as every=50]"""

import sys
import time
import warnings

import torch
from data import Scans, pl
from torch import nn

if pl.__name__ == "lightning.pytorch":
    from lightning.pytorch.callbacks import ModelCheckpoint
else:
    from pytorch_lightning.callbacks import ModelCheckpoint

CONFIG = {"lr": 1e-4, "width": 1024, "every": 4, "batch_size": 64, "count": 10240}


class Retina(pl.LightningModule):
    def __init__(self, width, lr):
        super().__init__()
        self.lr = lr
        self.body = nn.Sequential(
            nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Linear(width, 2)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.head(self.body(x)), y)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr, fused=True)


def main(config):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    pl.seed_everything(0)
    keep = ModelCheckpoint(
        dirpath="checkpoints", every_n_train_steps=config["every"], save_top_k=1, monitor=None
    )
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        devices=1,
        logger=False,
        callbacks=[keep],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Retina(config["width"], config["lr"])
    start = time.perf_counter()
    trainer.fit(model, datamodule=Scans(config["count"], config["batch_size"]))
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    config = dict(CONFIG)
    for item in sys.argv[1:]:
        key, value = item.split("=")
        config[key] = type(config[key])(value)
    main(config)
