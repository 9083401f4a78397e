import argparse
import random
import time

import torch
from photos import Storefronts
from torch import nn
from torch.utils.data import DataLoader
from transforms import Compose, Normalize, RandomFlip, RandomPerspective, Resize, ToTensor


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x):
        return torch.relu(x + self.body(x))


def build(width=40):
    return nn.Sequential(
        nn.Conv2d(3, width, 4, 4), Residual(width), nn.MaxPool2d(2), Residual(width),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 6),
    )  # fmt: skip


def train_epoch(net, loader, optimizer):
    total, n = 0.0, 0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        total, n = total + loss.detach(), n + 1
    return float(total / n), n


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--size", type=int, default=112)
    parser.add_argument("--resize-first", action="store_true")
    args = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    steps = [RandomFlip(), RandomPerspective(), Resize(args.size)]
    if args.resize_first:
        steps = [Resize(args.size), RandomFlip(), RandomPerspective()]
    transform = Compose([*steps, ToTensor(), Normalize([0.5] * 3, [0.25] * 3)])
    loader = DataLoader(Storefronts(360, transform), batch_size=12, shuffle=True)
    net = build()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    done, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        loss, n = train_epoch(net, loader, optimizer)
        done += n
        print(f"epoch {epoch}: {loss:.4f}")
    print(f"trained {done} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
