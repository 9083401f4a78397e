"""Predicts the hardness of forged steel from its treatment, with Lightning."""

import argparse
import time

import lightning as L
import torch
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
)

INPUTS = 192


def make_loader(count, batch_size, shuffle):
    x = torch.randn(count, INPUTS)
    y = torch.sin(x[:, :6].sum(dim=1))
    dataset = TensorDataset(x, y)
    order = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
    return DataLoader(
        dataset, sampler=BatchSampler(order, batch_size, drop_last=True), batch_size=None
    )


class Hardness(L.LightningModule):
    def __init__(self, width=512):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(INPUTS, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.mse_loss(self(x), y), batch_size=len(x))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()

    torch.set_num_threads(1)
    L.seed_everything(220)
    training = make_loader(36 * 640, 640, shuffle=True)
    held_out = make_loader(2 * 640, 640, shuffle=False)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=args.epochs,
        logger=CSVLogger("logs"),
        log_every_n_steps=18,
        num_sanity_val_steps=0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Hardness()
    started = time.perf_counter()
    trainer.fit(model, training, held_out)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
