"""Herons in wetland pictures, with Lightning."""

import time

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Herons(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(64, 4),
        )  # fmt: skip

    def training_step(self, batch, _):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", nn.functional.cross_entropy(self.net(x), y))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def pictures(count):
    return TensorDataset(torch.randn(count, 3, 40, 40), torch.randint(0, 4, (count,)))


if __name__ == "__main__":
    torch.set_num_threads(1)
    L.seed_everything(0)
    trainer = L.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, default_root_dir=".",
    )  # fmt: skip
    train = DataLoader(pictures(800), batch_size=16, shuffle=True)
    val = DataLoader(pictures(64), batch_size=32)
    start = time.perf_counter()
    trainer.fit(Herons(), train, val)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")
