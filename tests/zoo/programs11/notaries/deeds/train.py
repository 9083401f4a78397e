import argparse
import time

import torch

from .config import Config
from .data import build_loader, make_table
from .encode import SoftBins
from .engine import Engine
from .model import build_model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encode", choices=["batch", "table"], default="batch")
    cfg = Config(encode=parser.parse_args().encode)
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    table, price = make_table(cfg)
    bins = SoftBins(table, cfg.bins)
    if cfg.encode == "table":
        loader = build_loader(bins(table), price, cfg)
    else:
        loader = build_loader(table, price, cfg)
    model = build_model(cfg)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
    engine = Engine(model, optimizer, bins if cfg.encode == "batch" else None)
    start = time.perf_counter()
    steps = engine.fit(loader, cfg.epochs)
    took = time.perf_counter() - start
    print(f"mean loss {engine.total / engine.seen:.4f}")
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
