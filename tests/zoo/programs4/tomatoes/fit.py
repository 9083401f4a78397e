"""Leaf diseases, with Lightning."""

import argparse
import time
import warnings

import lightning as L
import torch
from data import LeafData
from torch import nn

warnings.filterwarnings("ignore")


class LeafNet(L.LightningModule):
    def __init__(self, lr=1e-3, width=8):
        super().__init__()
        self.save_hyperparameters()
        w = width
        self.net = nn.Sequential(
            nn.Conv2d(3, w, 3, 2, 1),
            nn.BatchNorm2d(w),
            nn.SiLU(),
            nn.Conv2d(w, 2 * w, 3, 2, 1),
            nn.BatchNorm2d(2 * w),
            nn.SiLU(),
            nn.Conv2d(2 * w, 4 * w, 3, 2, 1),
            nn.BatchNorm2d(4 * w),
            nn.SiLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4 * w, 8),
        )

    def training_step(self, batch, batch_idx):
        photos, labels = batch
        loss = nn.functional.cross_entropy(self.net(photos), labels)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), self.hparams.lr)
        steps = self.trainer.estimated_stepping_batches
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--photos", type=int, default=1600)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    L.seed_everything(1)
    torch.set_num_threads(1)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=args.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = LeafData(args.photos, args.batch_size, args.workers)
    start = time.perf_counter()
    trainer.fit(LeafNet(), data)
    seconds = time.perf_counter() - start
    print(f"loss {trainer.callback_metrics['loss']:.5f}")
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")
