"""A single-shot detector on made-up ships."""

import argparse
import time

import torch
from losses import detection_loss, detection_loss_batched
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 24, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 48, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.out = nn.Conv2d(48, 5, 1)

    def forward(self, x):
        y = self.out(self.stem(x)).flatten(2).transpose(1, 2)
        return y[..., :4], y[..., 4]


def batches(count, size):
    g = torch.Generator().manual_seed(11)
    images = torch.randn(size * 4, 1, 64, 64, generator=g)
    targets = torch.rand(size * 4, 64, 4, generator=g)
    present = (torch.rand(size * 4, 64, generator=g) < 0.1).float()
    for k in range(count):
        part = slice((k % 4) * size, (k % 4 + 1) * size)
        yield images[part], targets[part], present[part]


def train(loss_fn, steps, size):
    torch.manual_seed(0)
    model = Detector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    start = time.perf_counter()
    for step, (image, target, present) in enumerate(batches(steps, size)):
        boxes, scores = model(image)
        loss = loss_fn(boxes, scores, target, present)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"{step:5d} {loss.item():.4f}")
    return time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batched", action="store_true")
    parser.add_argument("--steps", type=int, default=160)
    args = parser.parse_args()
    torch.set_num_threads(1)
    took = train(detection_loss_batched if args.batched else detection_loss, args.steps, 96)
    print(f"trained {args.steps} steps in {took:.3f} s")
