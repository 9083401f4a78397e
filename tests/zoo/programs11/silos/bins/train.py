import argparse
import time

import torch
from torch.nn import functional as F

from .config import Config
from .data import build_loader
from .model import TraceNet
from .shards import write_shards


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefetch", type=int, default=2)
    cfg = Config(prefetch=parser.parse_args().prefetch)
    torch.set_num_threads(1)
    torch.manual_seed(15)
    paths = write_shards("shards", cfg.shards, cfg.rows, cfg.length, cfg.kinds)
    loader = build_loader(paths, cfg)
    model = TraceNet(cfg.kinds)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    steps = 0
    start = time.perf_counter()
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    took = time.perf_counter() - start
    print(f"last loss {loss.item():.3f}")
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
