import argparse
import time

import torch

from config import Config
from data import build_loader, write_bank
from engine import build_model, train_one_epoch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep-workers", action="store_true")
    cfg = Config(keep_workers=parser.parse_args().keep_workers)
    torch.set_num_threads(1)
    torch.manual_seed(2)
    write_bank(cfg.bank, cfg.notes, cfg.length)
    loader = build_loader(cfg)
    model = build_model(cfg)
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
