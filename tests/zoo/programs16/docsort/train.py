import argparse
import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader

from data import BATCHES, Mail, pad_batch
from model import Sorter


@dataclass
class Config:
    batches: str = "random"
    documents: int = 1280
    vocab_size: int = 1000
    classes: int = 9
    width: int = 64
    batch_size: int = 16
    epochs: int = 2


class Trainer:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        dataset = Mail(cfg.documents, cfg.vocab_size, cfg.classes)
        self.loader = DataLoader(
            dataset,
            batch_sampler=BATCHES[cfg.batches](dataset, cfg.batch_size, seed=1),
            collate_fn=pad_batch,
        )
        self.model = Sorter(cfg.vocab_size, cfg.width, cfg.classes)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.criterion = nn.CrossEntropyLoss()
        self.steps = 0

    def fit(self):
        for epoch in range(self.cfg.epochs):
            for ids, labels in self.loader:
                loss = self.criterion(self.model(ids), labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.steps += 1
            print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", choices=sorted(BATCHES), default="random")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    trainer = Trainer(Config(**vars(parser.parse_args())))
    started = time.perf_counter()
    trainer.fit()
    print(f"trained {trainer.steps} steps in {time.perf_counter() - started:.3f} s")
