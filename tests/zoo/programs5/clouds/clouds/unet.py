import math

import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.GroupNorm(8, width)
        self.qkv = nn.Conv2d(width, 3 * width, 1)
        self.out = nn.Conv2d(width, width, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, 3, 4, c // 4, h * w).transpose(-1, -2).unbind(1)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(c // 4), -1)
        return x + self.out((weights @ v).transpose(-1, -2).reshape(b, c, h, w))


class Block(nn.Module):
    def __init__(self, i, o, time_dim):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(8, i), nn.SiLU(), nn.Conv2d(i, o, 3, padding=1))
        self.time = nn.Linear(time_dim, o)
        self.second = nn.Sequential(nn.GroupNorm(8, o), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1))
        self.skip = nn.Conv2d(i, o, 1)

    def forward(self, x, t):
        h = self.first(x) + self.time(t)[:, :, None, None]
        return self.skip(x) + self.second(h)


class UNet(nn.Module):
    def __init__(self, config):
        super().__init__()
        w, self.time_dim = config.width, 4 * config.width
        sizes = [config.size, config.size // 2, config.size // 4]
        widths = [w, 2 * w, 2 * w]

        def attention(size, width):
            return SelfAttention(width) if size in config.attention_at else nn.Identity()

        self.enter = nn.Conv2d(1, w, 3, padding=1)
        self.down = nn.ModuleList(Block(i, o, self.time_dim) for i, o in zip([w, *widths], widths))
        self.down_attention = nn.ModuleList(map(attention, sizes, widths))
        self.up = nn.ModuleList(
            Block(i + s, s, self.time_dim)
            for i, s in zip([widths[2], widths[2], widths[1]], widths[::-1])
        )
        self.up_attention = nn.ModuleList(map(attention, sizes[::-1], widths[::-1]))
        self.leave = nn.Conv2d(w, 1, 3, padding=1)

    def forward(self, x, t):
        half = self.time_dim // 2
        angle = t[:, None] * torch.exp(-math.log(1e4) * torch.arange(half) / half)
        t = torch.cat([angle.sin(), angle.cos()], 1)
        x, kept = self.enter(x), []
        for block, attention in zip(self.down, self.down_attention):
            x = attention(block(x, t))
            kept.append(x)
            x = nn.functional.avg_pool2d(x, 2)
        for block, attention in zip(self.up, self.up_attention):
            x = nn.functional.interpolate(x, scale_factor=2)
            x = attention(block(torch.cat([x, kept.pop()], 1), t))
        return self.leave(x)
