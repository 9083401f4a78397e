"""Segment lanes in synthetic road pictures, four small batches per update."""

import argparse
import logging
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger("lanes")
ACCUMULATE = 4


def roads(count, size=48):
    generator = torch.Generator().manual_seed(3)
    position = torch.rand(count, 3, 1, 1, generator=generator)
    slope = torch.rand(count, 3, 1, 1, generator=generator) - 0.5
    y = torch.linspace(0, 1, size)[:, None]
    x = torch.linspace(0, 1, size)[None, :]
    near = (x - position - slope * y).abs() < 0.04
    labels = torch.where(near.any(1), near.float().argmax(1) + 1, 0)
    pictures = torch.rand(count, 3, size, size, generator=generator)
    return pictures + near.any(1, keepdim=True) * 0.8, labels


def unit(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()
    )


class UNet(nn.Module):
    def __init__(self, width=10, classes=4):
        super().__init__()
        self.down = unit(3, width)
        self.middle = nn.Sequential(unit(width, 2 * width), unit(2 * width, 2 * width))
        self.up = unit(3 * width, width)
        self.out = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        fine = self.down(x)
        coarse = self.middle(F.max_pool2d(fine, 2))
        coarse = F.interpolate(coarse, scale_factor=2)
        return self.out(self.up(torch.cat([fine, coarse], 1)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log-level", default="DEBUG")
    parser.add_argument("--log-file", default="train.log")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    logging.basicConfig(
        filename=args.log_file,
        level=args.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    for noisy in ("torch", "fsspec", "sympy"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    torch.manual_seed(0)
    torch.set_num_threads(1)

    loader = DataLoader(TensorDataset(*roads(1024)), batch_size=8, shuffle=True, drop_last=True)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    updates = 0
    begin = time.perf_counter()
    for epoch in range(args.epochs):
        for index, (pictures, labels) in enumerate(loader):
            log.debug("pictures %s", pictures)
            logits = model(pictures)
            loss = F.cross_entropy(logits, labels)
            (loss / ACCUMULATE).backward()
            log.debug("epoch %d batch %d loss %s", epoch, index, loss)
            log.debug("logits %s", logits)
            if (index + 1) % ACCUMULATE == 0:
                optimizer.step()
                optimizer.zero_grad()
                updates += 1
        log.info("epoch %d loss %.4f", epoch, loss.item())
        print(f"epoch {epoch} loss {loss.item():.4f}")
    print(f"trained {updates} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
