"""A small language model for recipes, written with Lightning."""

import argparse
import math
import time

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SYMBOLS = 64
LENGTH = 64
DIM = 96


def wave_table(length, dim):
    table = torch.zeros(length, dim)
    for position in range(length):
        for i in range(0, dim, 2):
            angle = position / math.pow(10000.0, i / dim)
            table[position, i] = math.sin(angle)
            table[position, i + 1] = math.cos(angle)
    return table


class Positions(nn.Module):
    def forward(self, x):
        return x + wave_table(x.shape[1], x.shape[2])


class StoredPositions(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", wave_table(LENGTH, DIM))

    def forward(self, x):
        return x + self.table[: x.shape[1]]


class RecipeText(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(85)
        steps = torch.randint(1, 4, (count, LENGTH + 1), generator=generator)
        self.text = steps.cumsum(dim=1) % SYMBOLS

    def __len__(self):
        return len(self.text)

    def __getitem__(self, index):
        return self.text[index, :-1], self.text[index, 1:]


class RecipeModel(L.LightningModule):
    def __init__(self, positions):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, DIM)
        self.positions = positions
        layer = nn.TransformerEncoderLayer(DIM, 4, 4 * DIM, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(DIM, SYMBOLS)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def training_step(self, batch, batch_idx):
        before, after = batch
        x = self.positions(self.embed(before))
        scores = self.out(self.encoder(x, mask=self.mask, is_causal=True))
        return nn.functional.cross_entropy(scores.flatten(0, 1), after.flatten())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, fused=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--positions", choices=["plain", "stored"], default="plain")
    args = parser.parse_args()

    torch.set_num_threads(1)
    L.seed_everything(85)
    model = RecipeModel(Positions() if args.positions == "plain" else StoredPositions())
    loader = DataLoader(RecipeText(90 * 16), batch_size=16, shuffle=True)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    started = time.perf_counter()
    trainer.fit(model, loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
