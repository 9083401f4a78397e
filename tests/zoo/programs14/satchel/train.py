"""Sequence tagging with Lightning; the state is kept while it trains."""

import logging
import sys
import time
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

for name in ("lightning.pytorch", "lightning.fabric"):
    logging.getLogger(name).setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class TaggingData(L.LightningDataModule):
    def __init__(self, batch_size=8, batches=100):
        super().__init__()
        self.batch_size = batch_size
        self.batches = batches

    def setup(self, stage):
        gen = torch.Generator().manual_seed(44)
        tokens = torch.randint(2000, (self.batch_size * self.batches, 32), generator=gen)
        self.data = TensorDataset(tokens, tokens % 9)

    def train_dataloader(self):
        return DataLoader(self.data, self.batch_size, shuffle=True)


class Tagger(L.LightningModule):
    def __init__(self, dim=256):
        super().__init__()
        self.embed = nn.Embedding(2000, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 9)

    def training_step(self, batch, _):
        tokens, tags = batch
        logits = self.head(self.encoder(self.embed(tokens)))
        return F.cross_entropy(logits.flatten(0, 1), tags.flatten())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=5e-4)


def main(every):
    torch.set_num_threads(1)
    L.seed_everything(44, verbose=False)
    keeper = ModelCheckpoint(
        dirpath="kept", every_n_train_steps=every, save_top_k=1, save_last=False
    )
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        callbacks=[keeper],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    begin = time.perf_counter()
    trainer.fit(Tagger(), datamodule=TaggingData())
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
