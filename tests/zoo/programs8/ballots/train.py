"""Read handwritten ballots with a vision transformer in Lightning."""

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


class Ballots(L.LightningModule):
    def __init__(self, dim=96, depth=4, patch=4, side=28):
        super().__init__()
        self.patches = nn.Conv2d(1, dim, patch, patch)
        self.position = nn.Parameter(torch.randn(1, (side // patch) ** 2, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(
            dim, 4, 2 * dim, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.position
        return self.head(self.encoder(x).mean(1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("accuracy", (self(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Timer(L.Callback):
    def on_train_start(self, trainer, module):
        self.start = time.perf_counter()

    def on_train_end(self, trainer, module):
        self.seconds = time.perf_counter() - self.start


def digits(count):
    y = torch.randint(0, 10, (count,))
    x = torch.randn(count, 1, 28, 28) * 0.3
    x[torch.arange(count), 0, 2 + y * 2] += 1
    return TensorDataset(x, y)


if __name__ == "__main__":
    L.seed_everything(0, verbose=False)
    torch.set_num_threads(1)
    timer = Timer()
    trainer = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[timer],
    )
    train = DataLoader(digits(1600), batch_size=32, shuffle=True)
    trainer.fit(Ballots(), train, DataLoader(digits(96), batch_size=32))
    print(f"accuracy {trainer.callback_metrics['accuracy'].item():.3f}")
    print(f"trained {trainer.global_step} steps in {timer.seconds:.3f} s")
