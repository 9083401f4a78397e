import argparse
import time

import torch
from album import Album
from torch import nn
from torch.utils.data import DataLoader


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(
        Album(1536),
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
    )
    net = nn.Sequential(
        block(3, 32), block(32, 64), block(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(128, 8),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        right = 0
        for images, kinds in loader:
            scores = net(images)
            loss = nn.functional.cross_entropy(scores, kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (scores.argmax(1) == kinds).sum()
            steps += 1
        print(f"epoch {epoch}: {right.item()} right, loss {loss.item():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
