"""Sorts marbles by colour; the pictures are kept on another host."""

import argparse
import time

import torch
from store import CLASSES, RemoteBatches, RemotePictures, start_store
from torch import nn
from torch.utils.data import DataLoader


def make_model():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(64, 128, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, CLASSES),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=70)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--requests", choices=["picture", "batch"], default="picture")
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(5)
    process, port = start_store()
    kind = RemotePictures if args.requests == "picture" else RemoteBatches
    dataset = kind(port, args.steps * args.batch_size)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True, num_workers=1)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    started = time.perf_counter()
    for step, (pictures, colours) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(pictures), colours)
        loss.backward()
        optimizer.step()
        if (step + 1) % 20 == 0:
            print(f"step {step + 1}: loss {loss.item():.4f}")
    elapsed = time.perf_counter() - started
    process.terminate()
    process.join()
    print(f"trained {step + 1} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
