import math

import torch
from torch import nn


def gaussian(size, sigma):
    x = torch.arange(size) - size // 2
    g = torch.exp(-(x**2) / (2 * sigma**2))
    return torch.outer(g, g) / g.sum() ** 2


class Smooth(nn.Module):
    """A fixed low pass for each channel."""

    def __init__(self, channels, size=9, sigma=1.8, groups=1):
        super().__init__()
        self.groups = groups
        kernel = gaussian(size, sigma)
        weight = torch.zeros(channels, channels // groups, size, size)
        for c in range(channels):
            weight[c, c % (channels // groups)] = kernel
        self.register_buffer("weight", weight)
        self.padding = size // 2

    def forward(self, x):
        return nn.functional.conv2d(x, self.weight, padding=self.padding, groups=self.groups)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.GroupNorm(8, channels)
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.time = nn.Linear(64, channels)

    def forward(self, x, t):
        h = self.conv(torch.nn.functional.silu(self.norm(x)))
        return x + h + self.time(t)[:, :, None, None]


class Denoiser(nn.Module):
    def __init__(self, channels=48, smooth_groups=1):
        super().__init__()
        self.enter = nn.Conv2d(1, channels, 3, padding=1)
        self.first = Block(channels)
        self.smooth = Smooth(channels, groups=smooth_groups)
        self.second = Block(channels)
        self.leave = nn.Conv2d(channels, 1, 3, padding=1)

    def embed(self, t):
        rate = torch.exp(-math.log(1000.0) * torch.arange(32) / 32)
        angle = t[:, None] * 1000.0 * rate
        return torch.cat([angle.sin(), angle.cos()], dim=1)

    def forward(self, x, t):
        t = self.embed(t)
        x = self.smooth(self.first(self.enter(x), t))
        return self.leave(self.second(x, t))
