import torch
from torch import nn


class Painter(nn.Module):
    def __init__(self, latent=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.ConvTranspose2d(latent, 64, 4), nn.BatchNorm2d(64), nn.ReLU(),
            nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, z):
        return self.net(z[:, :, None, None])


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1),
            nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(),
            nn.Linear(1024, 1),
        )  # fmt: skip

    def forward(self, x):
        return self.net(x)[:, 0]


def portraits(n, generator):
    """A head, two eyes and a mouth."""
    y, x = torch.meshgrid(torch.linspace(-1, 1, 32), torch.linspace(-1, 1, 32), indexing="ij")
    wide = 0.5 + 0.3 * torch.rand(n, 1, 1, generator=generator)
    gap = 0.2 + 0.15 * torch.rand(n, 1, 1, generator=generator)
    head = torch.sigmoid(20 * (wide - (x**2 + 0.7 * y**2).sqrt()))
    eyes = sum(torch.exp(-60 * ((x - s * gap) ** 2 + (y + 0.2) ** 2)) for s in (-1, 1))
    mouth = torch.exp(-40 * ((y - 0.35) ** 2 + 0.2 * x**2))
    return (2 * (head - eyes - mouth).clamp(0, 1) - 1)[:, None]
