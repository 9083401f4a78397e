import argparse
import time

import torch

from .config import Config
from .data import build_loader
from .engine import train_one_epoch
from .model import BirdNet


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--filters", choices=["local", "shared"], default="local")
    cfg = Config(filters=parser.parse_args().filters)
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    loader = build_loader(cfg)
    model = BirdNet(cfg.n_species)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    start = time.perf_counter()
    for epoch in range(cfg.epochs):
        meter = train_one_epoch(model, loader, optimizer)
        print(f"epoch {epoch} loss {meter.mean:.3f}")
    took = time.perf_counter() - start
    print(f"trained {cfg.epochs * len(loader)} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
