"""Field strength of magnets, with a held-out set."""

import argparse
import time

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Field(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(160, 256),
            nn.GELU(),
            nn.Linear(256, 256),
            nn.GELU(),
            nn.Linear(256, 256),
            nn.GELU(),
            nn.Linear(256, 1),
        )

    def on_train_start(self):
        self.start = time.perf_counter()

    def on_train_end(self):
        self.seconds = time.perf_counter() - self.start

    def loss(self, batch):
        points, strength = batch
        return nn.functional.mse_loss(self.net(points).squeeze(-1), strength)

    def training_step(self, batch, _):
        return self.loss(batch)

    def validation_step(self, batch, _):
        self.log("held_out", self.loss(batch))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def points(count, batch, shuffle=False):
    x = torch.randn(count, 64, 160)
    return DataLoader(TensorDataset(x, x[..., :10].mean(dim=-1)), batch_size=batch, shuffle=shuffle)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check-every", type=int, default=5)
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()
    L.seed_everything(0)
    torch.set_num_threads(1)

    model = Field()
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=1,
        val_check_interval=args.check_every,
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, points(args.steps * 32, 32, shuffle=True), points(8 * 32, 32))
    print(f"trained {trainer.global_step} steps in {model.seconds:.3f} s")


if __name__ == "__main__":
    main()
