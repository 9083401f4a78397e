import torch
from torch import nn


def precompute_freqs(dim, end, theta=10000.0):
    freqs = 1.0 / theta ** (torch.arange(0, dim, 2).float() / dim)
    angles = torch.outer(torch.arange(end).float(), freqs)
    return torch.cos(angles), torch.sin(angles)


def rotate(x, cos, sin):
    cos, sin = cos[:, None], sin[:, None]
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


class Rotary(nn.Module):
    def __init__(self, dim, max_position, kind):
        super().__init__()
        self.dim, self.max_position, self.kind = dim, max_position, kind
        if kind == "buffer":
            cos, sin = precompute_freqs(dim, max_position)
            self.register_buffer("cos", cos, persistent=False)
            self.register_buffer("sin", sin, persistent=False)

    def tables(self):
        if self.kind == "buffer":
            return self.cos, self.sin
        return precompute_freqs(self.dim, self.max_position)

    def forward(self, x):
        cos, sin = self.tables()
        t = x.shape[1]
        return rotate(x, cos[:t], sin[:t])
