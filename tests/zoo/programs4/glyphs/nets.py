import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, z=48, c=48):
        super().__init__()
        self.z = z
        self.net = nn.Sequential(
            nn.Linear(z, 4 * c * 16),
            nn.Unflatten(1, (4 * c, 4, 4)),
            nn.BatchNorm2d(4 * c),
            nn.ReLU(True),
            nn.ConvTranspose2d(4 * c, 2 * c, 4, 2, 1),
            nn.BatchNorm2d(2 * c),
            nn.ReLU(True),
            nn.ConvTranspose2d(2 * c, c, 4, 2, 1),
            nn.BatchNorm2d(c),
            nn.ReLU(True),
            nn.ConvTranspose2d(c, 1, 4, 2, 1),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, c, 4, 2, 1),
            nn.LeakyReLU(0.2, True),
            nn.Conv2d(c, 2 * c, 4, 2, 1),
            nn.LeakyReLU(0.2, True),
            nn.Conv2d(2 * c, 4 * c, 4, 2, 1),
            nn.LeakyReLU(0.2, True),
            nn.Flatten(),
            nn.Linear(4 * c * 16, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def real_glyphs(n, generator):
    """Strokes on 32 x 32."""
    grid = torch.linspace(-1, 1, 32)
    a, b, c = torch.randn(3, n, 1, 1, generator=generator)
    line = a * grid[None, :, None] + b * grid[None, None, :] + 0.5 * c
    return (2 * torch.exp(-30 * line**2) - 1)[:, None]
