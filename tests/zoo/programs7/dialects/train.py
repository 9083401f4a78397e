"""Dialect from short transcripts; the corpus is small, so there are many epochs."""

import argparse
import logging
import random
import time
import warnings

import lightning as L
import torch
from module import DialectClassifier
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


class Sentences(Dataset):
    """Sentences as lists of words; the lexicon is read where it is needed first."""

    def __init__(self, count, length):
        rng = random.Random(8)
        self.sentences = [[f"w{rng.randrange(2000)}" for _ in range(length)] for _ in range(count)]
        self.lexicon = None

    def __len__(self):
        return len(self.sentences)

    def __getitem__(self, i):
        if self.lexicon is None:
            self.lexicon = read_lexicon("lexicon.txt")
        ids = torch.tensor([self.lexicon[word] for word in self.sentences[i]])
        return ids, ids[0] % 9


def write_lexicon(path, words=25000):
    with open(path, "w") as f:
        f.writelines(f"w{i}\t{i % 2000}\n" for i in range(words))


def read_lexicon(path):
    with open(path) as f:
        pairs = (line.rstrip().split("\t") for line in f)
        return {word: int(number) for word, number in pairs}


class Corpus(L.LightningDataModule):
    def __init__(self, sentences=256, length=40, batch_size=32, keep_workers=False):
        super().__init__()
        self.shape = (sentences, length)
        self.batch_size = batch_size
        self.keep_workers = keep_workers

    def setup(self, stage=None):
        write_lexicon("lexicon.txt")
        self.train = Sentences(*self.shape)

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
    parser.add_argument("--epochs", type=int, default=36)
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
