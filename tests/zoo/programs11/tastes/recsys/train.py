import argparse
import time

import torch

from .config import Config, update
from .data import Interactions
from .engine import Engine
from .model import TwoTower
from .samplers import SAMPLERS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sampler", choices=sorted(SAMPLERS), default="exact")
    cfg = update(Config(), vars(parser.parse_args()).items())
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    data = Interactions(cfg)
    model = TwoTower(cfg)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
    engine = Engine(model, optimizer, data, SAMPLERS[cfg.sampler](data, cfg))
    start = time.perf_counter()
    for epoch in range(cfg.epochs):
        engine.train_epoch()
        print(f"epoch {epoch} loss {engine.losses[-1]:.3f}")
    took = time.perf_counter() - start
    print(f"trained {len(engine.losses)} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
