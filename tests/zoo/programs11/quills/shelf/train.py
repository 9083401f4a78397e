import argparse
import time

import torch
from torch.nn import functional as F

from .config import Config
from .data import Titles
from .model import TitleNet
from .optim import build_optimizer


def train(model, titles, optimizer, epochs):
    steps = 0
    for epoch in range(epochs):
        for ids, genre in titles:
            loss = F.cross_entropy(model(ids), genre)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch} loss {loss.item():.3f}")
    return steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", choices=["dense", "sparse"], default="dense")
    cfg = Config(tables=parser.parse_args().tables)
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    titles = Titles(cfg)
    model = TitleNet(cfg)
    optimizer = build_optimizer(model, cfg)
    start = time.perf_counter()
    steps = train(model, titles, optimizer, cfg.epochs)
    took = time.perf_counter() - start
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
