"""A small vision transformer with Lightning: data module, validation, cosine schedule."""

import time
import warnings

import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Textures(pl.LightningDataModule):
    def setup(self, stage=None):
        generator = torch.Generator().manual_seed(0)
        labels = torch.randint(0, 8, (2240,), generator=generator)
        prototypes = torch.rand(8, 3, 32, 32, generator=generator)
        pictures = prototypes[labels] + 0.5 * torch.randn(2240, 3, 32, 32, generator=generator)
        self.train = TensorDataset(pictures[:2048], labels[:2048])
        self.held = TensorDataset(pictures[2048:], labels[2048:])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=32, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.held, batch_size=64)


class TinyViT(pl.LightningModule):
    def __init__(self, width=96, depth=2, heads=4):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, stride=4)
        self.position = nn.Parameter(0.02 * torch.randn(1, 64, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 8)

    def forward(self, x):
        tokens = self.patch(x).flatten(2).transpose(1, 2) + self.position
        return self.head(self.encoder(tokens).mean(1))

    def training_step(self, batch, batch_idx):
        pictures, labels = batch
        loss = F.cross_entropy(self(pictures), labels)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        pictures, labels = batch
        logits = self(pictures)
        self.log("val_loss", F.cross_entropy(logits, labels))
        self.log("val_accuracy", (logits.argmax(1) == labels).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2)]


def main():
    warnings.filterwarnings("ignore")
    pl.seed_everything(0)
    torch.set_num_threads(1)
    trainer = pl.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[EarlyStopping("val_loss", patience=3)],
    )
    model = TinyViT()
    begin = time.perf_counter()
    trainer.fit(model, datamodule=Textures())
    took = time.perf_counter() - begin
    print(f"accuracy {float(trainer.callback_metrics['val_accuracy']):.3f}")
    print(f"trained {trainer.global_step} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
