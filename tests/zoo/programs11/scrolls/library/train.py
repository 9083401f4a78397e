import argparse
import time

import torch
from torch.nn import functional as F

from .data import build_loader
from .model import Reader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(14)
    loader = build_loader(args.limit, batch_size=16)
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    steps, total = 0, 0.0
    start = time.perf_counter()
    for ids, school in loader:
        loss = F.cross_entropy(model(ids), school)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        steps += 1
    took = time.perf_counter() - start
    print(f"mean loss {total / steps:.3f}")
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
