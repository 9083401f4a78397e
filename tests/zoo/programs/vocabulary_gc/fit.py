"""Predict the next move of a game from its history."""

import argparse
import gc
import time
import warnings

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Node:
    """A position in the book of openings, linked with those before and after it."""

    def __init__(self, parent, move):
        self.parent = parent
        self.move = move
        self.children = {}


def read_book(depth=6, width=3):
    root = Node(None, None)
    level = [root]
    for _ in range(depth):
        for node in level:
            for move in range(width):
                node.children[move] = Node(node, move)
        level = [child for node in level for child in node.children.values()]
    return root


class FreeMemory(pl.Callback):
    def __init__(self, every):
        self.every = every

    def on_train_batch_end(self, trainer, *rest):
        if trainer.global_step % self.every == 0:
            gc.collect()


class Player(pl.LightningModule):
    def __init__(self, book):
        super().__init__()
        self.book = book
        self.moves = nn.Embedding(64, 64)
        self.rnn = nn.GRU(64, 112, batch_first=True)
        self.out = nn.Linear(112, 64)

    def training_step(self, batch, batch_idx):
        (games,) = batch
        states, _ = self.rnn(self.moves(games[:, :-1]))
        return nn.functional.cross_entropy(self.out(states).flatten(0, 1), games[:, 1:].flatten())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--free-every", type=int, default=5)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    pl.seed_everything(0)
    games = torch.randint(0, 64, (140 * 64, 33), generator=torch.Generator().manual_seed(0))
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        callbacks=[FreeMemory(args.free_every)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = DataLoader(TensorDataset(games), batch_size=64)
    start = time.perf_counter()
    trainer.fit(Player(read_book()), loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
