import argparse
import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader

from .data import BATCHERS, MoleculeDataset
from .model import MoleculeNet


@dataclass
class Config:
    batching: str = "merge"
    molecules: int = 1280
    batch_size: int = 32
    epochs: int = 5
    features: int = 24
    width: int = 56
    depth: int = 3


class Trainer:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.model = MoleculeNet(cfg.features, cfg.width, cfg.depth)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.loader = DataLoader(
            MoleculeDataset(cfg.molecules, cfg.features, seed=3),
            batch_size=cfg.batch_size,
            shuffle=True,
            num_workers=1,
            persistent_workers=True,
            collate_fn=BATCHERS[cfg.batching],
        )
        self.step = 0

    def train_step(self, batch):
        atoms, edges, orders, graph, target = batch
        predicted = self.model(atoms, edges, orders, graph, len(target))
        loss = nn.functional.smooth_l1_loss(predicted, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def fit(self):
        for epoch in range(self.cfg.epochs):
            for batch in self.loader:
                loss = self.train_step(batch)
                self.step += 1
            print(f"epoch {epoch}: loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batching", choices=sorted(BATCHERS), default="merge")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    trainer = Trainer(Config(**vars(parser.parse_args())))
    started = time.perf_counter()
    trainer.fit()
    print(f"trained {trainer.step} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
