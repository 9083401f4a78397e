"""Crop types from satellite patches."""

import argparse
import time

import torch
from metrics import CountingIoU, EpochIoU
from torch import nn

N_CLASSES, BANDS = 5, 6


def patches(n, size, generator):
    coarse = torch.randint(N_CLASSES, (n, 1, size // 8, size // 8), generator=generator)
    target = nn.functional.interpolate(coarse.float(), size=size, mode="nearest")[:, 0].long()
    signature = torch.randn(N_CLASSES, BANDS, generator=generator)
    bands = signature[target].permute(0, 3, 1, 2)
    return bands + torch.randn(bands.shape, generator=generator), target


class CropNet(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(BANDS, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, N_CLASSES, 1),
        )

    def forward(self, x):
        return self.net(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--metric", choices=["epoch", "counting"], default="epoch")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    images, targets = patches(240, args.size, torch.Generator().manual_seed(1))
    model = CropNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    metric = (EpochIoU if args.metric == "epoch" else CountingIoU)(N_CLASSES)
    start = time.perf_counter()
    for step in range(args.steps):
        pick = torch.randint(len(images), (args.batch,))
        x, y = images[pick], targets[pick]
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metric.update(logits.detach(), y)
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"epoch loss {loss.item():.5f} iou {metric.compute():.5f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
