import argparse
import time
from dataclasses import dataclass
from typing import Optional

import torch

from bank import ContrastiveLoss, FeatureBank
from model import Encoder


@dataclass
class Config:
    bank_batches: Optional[int] = None
    images: int = 2048
    size: int = 24
    batch_size: int = 128
    steps: int = 120


class PairSource:
    """Two noisy views of the same picture."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.generator = torch.Generator().manual_seed(17)
        self.images = torch.randn(cfg.images, 3, cfg.size, cfg.size, generator=self.generator)

    def __iter__(self):
        for _ in range(self.cfg.steps):
            index = torch.randint(self.cfg.images, (self.cfg.batch_size,), generator=self.generator)
            images = self.images[index]
            yield images, images.flip(3)


class Trainer:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.encoder = Encoder()
        self.criterion = ContrastiveLoss(FeatureBank(cfg.bank_batches))
        self.optimizer = torch.optim.SGD(self.encoder.parameters(), lr=0.03, momentum=0.9)
        self.steps = 0

    def train_step(self, first, second):
        queries = self.encoder(first)
        with torch.no_grad():
            keys = self.encoder(second)
        loss = self.criterion(queries, keys)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        return loss.detach()

    def fit(self):
        for first, second in PairSource(self.cfg):
            loss = self.train_step(first, second)
            if self.steps % 60 == 0:
                print(f"step {self.steps}: loss {loss.item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bank-batches", type=int, default=None)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    trainer = Trainer(Config(**vars(parser.parse_args())))
    started = time.perf_counter()
    trainer.fit()
    print(f"trained {trainer.steps} steps in {time.perf_counter() - started:.3f} s")
