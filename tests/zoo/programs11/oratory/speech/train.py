import argparse
import time

import torch
from torch.nn import functional as F

from .data import build_loader
from .model import SpeakerNet
from .prepare import prepare

SPEAKERS, UTTERANCES, LENGTH, BATCH, EPOCHS = 16, 320, 8000, 8, 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--storage", choices=["gz", "raw"], default="gz")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    scp = prepare("data", UTTERANCES, SPEAKERS, LENGTH, packed=args.storage == "gz")
    loader = build_loader(scp, BATCH)
    model = SpeakerNet(SPEAKERS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    steps = 0
    start = time.perf_counter()
    for _ in range(EPOCHS):
        for waves, speakers in loader:
            loss = F.cross_entropy(model(waves), speakers)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    took = time.perf_counter() - start
    print(f"last loss {loss.item():.3f}")
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
