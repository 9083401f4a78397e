"""Depth of fjords along a line, with Lightning."""

import argparse
import time

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Depth(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(4, 48, 7, padding=3), nn.ReLU(), nn.Conv1d(48, 48, 7, padding=3), nn.ReLU(),
            nn.Conv1d(48, 1, 1),
        )  # fmt: skip

    def loss(self, batch):
        x, y = batch
        return nn.functional.l1_loss(self.net(x), y)

    def training_step(self, batch, _):
        return self.loss(batch)

    def validation_step(self, batch, _):
        self.log("val", self.loss(batch))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def lines(count):
    return TensorDataset(torch.randn(count, 4, 128), torch.randn(count, 1, 128))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--val-interval", type=int, default=10)
    args = parser.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(2)
    trainer = L.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
        val_check_interval=args.val_interval,
    )  # fmt: skip
    train = DataLoader(lines(3200), batch_size=16, shuffle=True)
    val = DataLoader(lines(320), batch_size=32)
    start = time.perf_counter()
    trainer.fit(Depth(), train, val)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
