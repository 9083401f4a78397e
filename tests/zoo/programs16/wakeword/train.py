import argparse
import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader

from data import WakeWordDataset, write_noise_bank
from model import WakeWordNet


@dataclass
class Config:
    clips: int = 192
    length: int = 4000
    batch_size: int = 32
    epochs: int = 16
    workers: int = 2
    keep_workers: bool = False
    learning_rate: float = 1e-3


class Accuracy:
    def __init__(self):
        self.reset()

    def reset(self):
        self.right = torch.zeros(())
        self.seen = 0

    def update(self, logits, labels):
        self.right += (logits.argmax(1) == labels).sum()
        self.seen += len(labels)

    def compute(self):
        return float(self.right) / max(self.seen, 1)


def train(cfg: Config):
    write_noise_bank("noise.npy", 2000, cfg.length, seed=1)
    dataset = WakeWordDataset(cfg.clips, cfg.length, "noise.npy", seed=2)
    loader = DataLoader(
        dataset,
        batch_size=cfg.batch_size,
        shuffle=True,
        num_workers=cfg.workers,
        persistent_workers=cfg.keep_workers,
    )
    model = WakeWordNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.learning_rate)
    accuracy = Accuracy()
    steps = 0
    started = time.perf_counter()
    for epoch in range(cfg.epochs):
        accuracy.reset()
        for clips, labels in loader:
            logits = model(clips)
            loss = nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            accuracy.update(logits.detach(), labels)
            steps += 1
        print(f"epoch {epoch}: accuracy {accuracy.compute():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep-workers", action="store_true")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train(Config(**vars(parser.parse_args())))
