import argparse
import time
from dataclasses import dataclass

import torch

from losses import MINERS, TripletLoss
from model import PhotoEncoder


@dataclass
class Config:
    miner: str = "pairwise"
    products: int = 200
    per_product: int = 8
    products_per_batch: int = 16
    size: int = 32
    steps: int = 240


class ProductBatches:
    """Each batch holds several photos of each of some products."""

    def __init__(self, cfg: Config, seed=2):
        self.cfg = cfg
        self.generator = torch.Generator().manual_seed(seed)
        base = torch.randn(cfg.products, 1, 3, cfg.size, cfg.size, generator=self.generator)
        noise = torch.randn(
            cfg.products, cfg.per_product, 3, cfg.size, cfg.size, generator=self.generator
        )
        self.photos = base + noise

    def __iter__(self):
        for _ in range(self.cfg.steps):
            chosen = torch.randperm(self.cfg.products, generator=self.generator)[
                : self.cfg.products_per_batch
            ]
            yield self.photos[chosen].flatten(0, 1), chosen.repeat_interleave(self.cfg.per_product)


def main(cfg: Config):
    model = PhotoEncoder()
    criterion = TripletLoss(cfg.miner)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = ProductBatches(cfg)
    steps = 0
    started = time.perf_counter()
    for photos, labels in batches:
        optimizer.zero_grad()
        loss = criterion(model(photos), labels)
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 50 == 0:
            print(f"step {steps}: loss {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--miner", choices=sorted(MINERS), default="pairwise")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    main(Config(**vars(parser.parse_args())))
