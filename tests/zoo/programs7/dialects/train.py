"""Dialect from short transcripts; the corpus is small, so there are many epochs."""

import argparse
import logging
import time
import warnings

import lightning as L
import torch
from module import DialectClassifier
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


class Corpus(L.LightningDataModule):
    def __init__(self, sentences=320, length=40, batch_size=32, keep_workers=False):
        super().__init__()
        self.shape = (sentences, length)
        self.batch_size = batch_size
        self.keep_workers = keep_workers

    def setup(self, stage=None):
        g = torch.Generator().manual_seed(8)
        tokens = torch.randint(0, 600, self.shape, generator=g)
        self.train = TensorDataset(tokens, tokens[:, 0] % 9)

    def train_dataloader(self):
        return DataLoader(
            self.train,
            batch_size=self.batch_size,
            shuffle=True,
            num_workers=2,
            persistent_workers=self.keep_workers,
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--keep-workers", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(1, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=args.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = DialectClassifier()
    corpus = Corpus(keep_workers=args.keep_workers)
    began = time.perf_counter()
    trainer.fit(model, datamodule=corpus)
    seconds = time.perf_counter() - began
    print(f"loss {trainer.callback_metrics['loss']:.4f}")
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
