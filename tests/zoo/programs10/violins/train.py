"""Dates old letters about violins by their words; word vectors are given and stay as they are."""

import argparse
import time

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WORDS = 100_000
DIM = 96
DECADES = 12


class LetterDater(L.LightningModule):
    def __init__(self, vectors, channels=128):
        super().__init__()
        self.embed = nn.Embedding.from_pretrained(vectors, freeze=True)
        self.first = nn.Conv1d(DIM, channels, 3, padding=1)
        self.second = nn.Conv1d(channels, channels, 3, padding=1)
        self.out = nn.Linear(channels, DECADES)

    def forward(self, tokens):
        x = self.embed(tokens).transpose(1, 2)
        x = torch.relu(self.first(x))
        x = torch.relu(self.second(x))
        return self.out(x.amax(dim=2))

    def training_step(self, batch, batch_idx):
        tokens, decade = batch
        return nn.functional.cross_entropy(self(tokens), decade)

    def configure_optimizers(self):
        return torch.optim.Adam([p for p in self.parameters() if p.requires_grad], lr=1e-3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save-every", type=int, default=5)
    args = parser.parse_args()

    torch.set_num_threads(1)
    L.seed_everything(75)
    tokens = torch.randint(WORDS, (100 * 64, 32))
    decades = tokens[:, 0] % DECADES
    loader = DataLoader(TensorDataset(tokens, decades), batch_size=64, shuffle=True)
    model = LetterDater(torch.randn(WORDS, DIM))
    saver = ModelCheckpoint(
        dirpath="checkpoints", every_n_train_steps=args.save_every, save_top_k=1
    )
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=1,
        logger=False,
        callbacks=[saver],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    started = time.perf_counter()
    trainer.fit(model, loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
