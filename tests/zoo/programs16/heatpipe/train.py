import argparse
import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from model import Surrogate
from simulate import make_pairs


@dataclass
class Config:
    precision: str = "float64"
    pairs: int = 12000
    points: int = 128
    width: int = 320
    depth: int = 3
    batch_size: int = 200
    epochs: int = 4


class SurrogateTrainer:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        dtype = getattr(torch, cfg.precision)
        start, later = make_pairs(cfg.pairs, cfg.points, substeps=40, seed=3)
        dataset = TensorDataset(
            torch.from_numpy(start).to(dtype), torch.from_numpy(later).to(dtype)
        )
        batches = BatchSampler(RandomSampler(dataset), cfg.batch_size, drop_last=True)
        self.loader = DataLoader(dataset, sampler=batches, batch_size=None)
        self.model = Surrogate(cfg.points, cfg.width, cfg.depth).to(dtype)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.criterion = nn.MSELoss()
        self.steps = 0

    def fit(self):
        for epoch in range(self.cfg.epochs):
            for start, later in self.loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(start), later)
                loss.backward()
                self.optimizer.step()
                self.steps += 1
            print(f"epoch {epoch}: loss {loss.item():.5f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", choices=["float32", "float64"], default="float64")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    trainer = SurrogateTrainer(Config(**vars(parser.parse_args())))
    started = time.perf_counter()
    trainer.fit()
    print(f"trained {trainer.steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
