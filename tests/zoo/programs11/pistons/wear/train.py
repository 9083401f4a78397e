import argparse
import time

import torch
from torch.nn import functional as F

from .config import Config
from .data import build_loader
from .model import build_model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--storage", default="float")
    cfg = Config(storage=parser.parse_args().storage)
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    loader = build_loader(cfg)
    model = build_model(cfg, loader.dataset.series)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
    steps = 0
    start = time.perf_counter()
    for past, future in loader:
        loss = F.l1_loss(model(past), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    took = time.perf_counter() - start
    print(f"last loss {loss.item():.4f}")
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
