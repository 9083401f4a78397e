import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F

from .data import build_loader
from .records import make_inventory
from .utils import AverageMeter, Housekeeping


def build_model(features, width, species):
    return nn.Sequential(
        nn.Linear(features, width),
        nn.GELU(),
        nn.Linear(width, width),
        nn.GELU(),
        nn.Linear(width, species),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tidy-every", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(10)
    plots = make_inventory(1200, 100, 6)
    loader = build_loader(plots, features=256, batch=256, steps=90)
    model = build_model(256, 832, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    meter, tidy = AverageMeter(), Housekeeping(args.tidy_every)
    steps = 0
    start = time.perf_counter()
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss.item(), len(y))
        tidy()
        steps += 1
    took = time.perf_counter() - start
    print(f"loss {meter.avg:.3f}")
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
