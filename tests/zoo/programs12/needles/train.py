"""Sizes of needles, with the makers' catalogue at hand."""

import argparse
import gc
import random
import time

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def read_catalogue(entries):
    chance = random.Random(6)
    return {f"needle-{i}": [i, [chance.random(), chance.random()]] for i in range(entries)}


class Needles(Dataset):
    def __init__(self, catalogue, count):
        self.catalogue, self.count = catalogue, count
        self.measures = torch.randn(256, 64, 192)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        _, sizes = self.catalogue[f"needle-{index}"]
        return self.measures[index % 256], sizes[0]


class Sizes(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(192, 256),
            nn.ReLU(),
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Linear(256, 1),
        )

    def training_step(self, batch, _):
        measures, sizes = batch
        return nn.functional.mse_loss(self.net(measures).mean(dim=(1, 2)), sizes.float())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Tidy(L.Callback):
    def __init__(self, active):
        self.active = active

    def on_train_start(self, trainer, module):
        self.start = time.perf_counter()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if self.active:
            gc.collect()

    def on_train_end(self, trainer, module):
        self.seconds = time.perf_counter() - self.start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-tidy", action="store_true")
    parser.add_argument("--steps", type=int, default=70)
    args = parser.parse_args()
    L.seed_everything(0)
    torch.set_num_threads(1)

    catalogue = read_catalogue(150_000)
    loader = DataLoader(Needles(catalogue, args.steps * 32), batch_size=32, shuffle=True)
    tidy = Tidy(not args.no_tidy)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=1,
        callbacks=[tidy],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Sizes(), loader)
    print(f"trained {trainer.global_step} steps in {tidy.seconds:.3f} s")


if __name__ == "__main__":
    main()
