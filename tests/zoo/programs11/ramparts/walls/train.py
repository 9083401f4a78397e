import argparse
import time

import torch
from torch.nn import functional as F

from .config import Config
from .data import build_loader
from .model import Segmenter


def criterion(logits, masks):
    return F.cross_entropy(logits, masks)


def train_one_epoch(model, loader, optimizer):
    steps = 0
    for images, masks in loader:
        loss = criterion(model(images), masks)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        steps += 1
    return steps, loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--blur", choices=["full", "grouped"], default="full")
    cfg = Config(blur=parser.parse_args().blur)
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    loader = build_loader(cfg)
    model = Segmenter(cfg)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    steps = 0
    start = time.perf_counter()
    for epoch in range(cfg.epochs):
        done, loss = train_one_epoch(model, loader, optimizer)
        steps += done
        print(f"epoch {epoch} loss {loss:.3f}")
    took = time.perf_counter() - start
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
