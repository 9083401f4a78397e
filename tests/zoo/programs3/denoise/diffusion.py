import torch
from torch import nn


class Schedule:
    def __init__(self, steps=200):
        beta = torch.linspace(1e-4, 0.03, steps)
        alpha = (1 - beta).cumprod(0)
        self.signal, self.noise = alpha.sqrt(), (1 - alpha).sqrt()
        self.steps = steps

    def corrupt(self, x, t, noise):
        shape = (-1, *[1] * (x.ndim - 1))
        return self.signal[t].view(shape) * x + self.noise[t].view(shape) * noise


class Denoiser(nn.Module):
    def __init__(self, size, width=512, depth=3, steps=200):
        super().__init__()
        self.time = nn.Embedding(steps, width)
        self.into = nn.Linear(size, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width)
            )
            for _ in range(depth)
        )
        self.out = nn.Linear(width, size)

    def forward(self, x, t):
        h = self.into(x) + self.time(t)
        for block in self.blocks:
            h = h + block(h)
        return self.out(h)
