"""Segmenting rust on steel plates."""

import argparse
import os
import time
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Settings:
    plates: int = 8 * 30
    batch_size: int = 8
    epochs: int = 4
    threads: int = field(default_factory=lambda: 4 * len(os.sched_getaffinity(0)))


class Down(nn.Sequential):
    def __init__(self, a, b):
        super().__init__(
            nn.Conv2d(a, b, 3, stride=2, padding=1), nn.GroupNorm(4, b), nn.ReLU(inplace=True)
        )


class Up(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(inplace=True))

    def forward(self, x, skip):
        x = nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
        return self.conv(torch.cat([x, skip], 1))


class RustNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2, self.d3 = Down(1, 16), Down(16, 32), Down(32, 48)
        self.u1, self.u2 = Up(48 + 32, 32), Up(32 + 16, 16)
        self.out = nn.Conv2d(16, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(a)
        return self.out(self.u2(self.u1(self.d3(b), b), a))


def main(settings):
    torch.set_num_threads(settings.threads)
    torch.manual_seed(0)
    plates = torch.rand(settings.plates, 1, 96, 96)
    masks = (nn.functional.avg_pool2d(plates, 2) > 0.5).float()
    loader = DataLoader(TensorDataset(plates, masks), settings.batch_size, shuffle=True)
    net = RustNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    steps = 0
    start = time.perf_counter()
    for epoch in range(settings.epochs):
        for x, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch}: {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int)
    given = {k: v for k, v in vars(parser.parse_args()).items() if v is not None}
    main(Settings(**given))
