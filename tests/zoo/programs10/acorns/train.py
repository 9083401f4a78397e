"""Names oaks by their acorns, with Lightning."""

import argparse
import time

import lightning as L
import torch
from data import FEATURES, SPECIES, Acorns, open_in_worker, write_sites
from torch import nn
from torch.utils.data import DataLoader


class OakModel(L.LightningModule):
    def __init__(self, width=704):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(FEATURES, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, SPECIES),
        )

    def training_step(self, batch, batch_idx):
        measures, climate, species = batch
        scores = self.layers(measures + climate.float()[:, None])
        return nn.functional.cross_entropy(scores, species)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--keep-workers", action="store_true")
    args = parser.parse_args()

    torch.set_num_threads(1)
    L.seed_everything(70)
    write_sites("sites.json", 40_000, seed=70)
    loader = DataLoader(
        Acorns("sites.json", 7 * 224, 40_000, seed=71),
        batch_size=224,
        shuffle=True,
        num_workers=2,
        worker_init_fn=open_in_worker,
        persistent_workers=args.keep_workers,
    )
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=args.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = OakModel()
    started = time.perf_counter()
    trainer.fit(model, loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
