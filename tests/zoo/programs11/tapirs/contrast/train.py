import argparse
import time

import torch

from .config import Config
from .data import TwoViews
from .model import Contrast


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--queue", type=int, default=0)
    cfg = Config(queue=parser.parse_args().queue)
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    views = TwoViews(cfg)
    model = Contrast(cfg)
    optimizer = torch.optim.SGD(model.encoder.parameters(), lr=cfg.lr)
    steps = 0
    start = time.perf_counter()
    for first, second in views:
        loss = model(first, second)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 30 == 0:
            print(f"step {steps} loss {loss.item():.3f}")
    took = time.perf_counter() - start
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
