import torch
import torch.nn.functional as F
from torch import nn


class ConvUnit(nn.Sequential):
    def __init__(self, i, o, stride=1):
        super().__init__(
            nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True)
        )


class NonLocal(nn.Module):
    """Every position looks at every other one (Wang et al. 2018)."""

    def __init__(self, channels, pool=1):
        super().__init__()
        half = channels // 2
        self.theta, self.phi, self.g = (nn.Conv2d(channels, half, 1) for _ in range(3))
        self.out = nn.Conv2d(half, channels, 1)
        self.pool = nn.MaxPool2d(pool) if pool > 1 else nn.Identity()

    def forward(self, x):
        b, _, h, w = x.shape
        query = self.theta(x).flatten(2).transpose(1, 2)
        smaller = self.pool(x)
        key = self.phi(smaller).flatten(2)
        value = self.g(smaller).flatten(2).transpose(1, 2)
        weights = (query @ key / query.shape[-1] ** 0.5).softmax(-1)
        y = (weights @ value).transpose(1, 2).reshape(b, -1, h, w)
        return x + self.out(y)


class RoadNet(nn.Module):
    def __init__(self, width=24, pool=1):
        super().__init__()
        self.stem = ConvUnit(3, width, stride=2)
        self.encoder = nn.Sequential(ConvUnit(width, width), ConvUnit(width, width))
        self.context = NonLocal(width, pool)
        self.decoder = nn.Sequential(ConvUnit(width, width), ConvUnit(width, width))
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        h = self.decoder(self.context(self.encoder(self.stem(x))))
        return F.interpolate(self.head(h), size=x.shape[-2:], mode="bilinear")


class DiceCE(nn.Module):
    def forward(self, logits, target):
        p = logits.softmax(1)[:, 1]
        t = target.float()
        dice = 1 - (2 * (p * t).sum() + 1) / (p.sum() + t.sum() + 1)
        return F.cross_entropy(logits, target) + dice


def make_tiles(n, size, generator):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    slope = torch.rand(n, 1, 1, generator=generator) * 4 - 2
    offset = torch.rand(n, 1, 1, generator=generator) * size
    mask = ((yy - slope * xx - offset) % size).abs() < 5
    noise = 0.5 * torch.randn(n, 3, size, size, generator=generator)
    return mask[:, None].float() + noise, mask.long()
