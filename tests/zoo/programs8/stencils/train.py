"""Segment stencilled letters, with running scores."""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from scores import Scores

CLASSES = 5


def conv(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())


class SegNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 4, stride=4)
        self.middle = nn.Sequential(conv(width, 2 * width), conv(2 * width, 2 * width))
        self.out = nn.Conv2d(2 * width, 16 * CLASSES, 1)

    def forward(self, x):
        return F.pixel_shuffle(self.out(self.middle(self.stem(x))), 4)


def make_stencils(count=480, side=64):
    levels = F.interpolate(torch.rand(count, 1, 6, 6), size=side, mode="bilinear")
    labels = (levels * CLASSES).long().clamp_(max=CLASSES - 1).squeeze(1)
    return levels + 0.1 * torch.randn_like(levels), labels


def train(args):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(TensorDataset(*make_stencils()), batch_size=16, shuffle=True)
    model = SegNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        scores = Scores(CLASSES)
        for image, label in loader:
            logits = model(image)
            loss = F.cross_entropy(logits, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if args.scores == "all" or steps % 15 == 0:
                scores.update(logits.argmax(1), label)
        print(f"epoch {epoch} loss {loss.item():.3f} " + scores.summary())
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--scores", default="all", choices=["all", "some"])
    train(parser.parse_args())
