"""Counting cells under the microscope, in a compiled U-shaped network."""

import time
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Config:
    steps: int = 120
    batch: int = 8
    side: int = 48
    lr: float = 1e-3
    log_every: int = 30


def double(a, b):
    return nn.Sequential(
        nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU()
    )


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.top, self.bottom = double(1, 16), double(16, 32)
        self.back = double(48, 16)
        self.out = nn.Conv2d(16, 1, 1)

    def forward(self, x):
        a = self.top(x)
        b = self.bottom(nn.functional.max_pool2d(a, 2))
        b = nn.functional.interpolate(b, scale_factor=2.0)
        return self.out(self.back(torch.cat([a, b], 1)))


def slides(config):
    generator = torch.Generator().manual_seed(11)
    stack = torch.rand(128, 1, config.side, config.side, generator=generator)
    for _ in range(config.steps):
        x = stack[torch.randint(128, (config.batch,), generator=generator)]
        yield x, (x > 0.8).float()


def main(config):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = Unet()
    compiled = torch.compile(net, backend="aot_eager")
    optimizer = torch.optim.Adam(net.parameters(), lr=config.lr)
    criterion = nn.BCEWithLogitsLoss()
    compiled(torch.rand(config.batch, 1, config.side, config.side)).sum().backward()
    start = time.perf_counter()
    for step, (x, y) in enumerate(slides(config)):
        optimizer.zero_grad()
        loss = criterion(compiled(x), y)
        loss.backward()
        optimizer.step()
        if step % config.log_every == 0:
            print(f"step={step} loss={loss.item():.4f}")
    print(f"trained {config.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main(Config())
