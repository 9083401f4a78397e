import argparse
import logging
import time
import warnings

import lightning as L
import torch
from torch import nn
from torch.nn import functional as F

from data import KINDS, LoavesData

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Baker(L.LightningModule):
    def __init__(self, lr=1e-3, width=16):
        super().__init__()
        self.save_hyperparameters()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
        )
        self.classify = nn.Linear(2 * width * 16, KINDS)

    def forward(self, x):
        return self.classify(self.features(x).flatten(1))

    def training_step(self, batch, batch_idx):
        images, labels = batch
        loss = F.cross_entropy(self(images), labels)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def on_train_epoch_end(self):
        if (self.current_epoch + 1) % 5 == 0:
            loss = self.trainer.callback_metrics["loss"]
            print(f"epoch {self.current_epoch + 1}: loss {loss:.4f}")

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)
        return [optimizer], [schedule]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--epochs", type=int, default=18)
    args = parser.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(21, verbose=False)
    data = LoavesData(args.persistent)
    data.prepare_data()
    trainer = L.Trainer(
        max_epochs=args.epochs,
        accelerator="cpu",
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(Baker(), datamodule=data)
    seconds = time.perf_counter() - start
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")
