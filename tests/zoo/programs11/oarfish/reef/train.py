import argparse
import time

import torch
from torch.nn import functional as F

from .config import DataConfig, TrainConfig
from .data import build_loader, write_frames
from .model import ReefNet


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("-j", "--workers", type=int, default=0)
    args = parser.parse_args()
    return DataConfig(workers=args.workers), TrainConfig()


def run_epoch(model, loader, optimizer):
    total = 0.0
    for images, labels in loader:
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    data, cfg = parse()
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    write_frames(data, cfg.classes, cfg.seed)
    loader = build_loader(data)
    model = ReefNet(cfg.classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    start = time.perf_counter()
    for epoch in range(cfg.epochs):
        print(f"epoch {epoch} loss {run_epoch(model, loader, optimizer):.3f}")
    took = time.perf_counter() - start
    print(f"trained {cfg.epochs * len(loader)} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
