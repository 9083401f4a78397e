import torch
from torch import nn
from torch.nn import functional as F

LAYERS = {}


def register(name):
    def wrap(cls):
        LAYERS[name] = cls
        return cls

    return wrap


def binomial(size):
    row = torch.ones(1)
    for _ in range(size - 1):
        row = F.pad(row, (0, 1)) + F.pad(row, (1, 0))
    kernel = torch.outer(row, row)
    return kernel / kernel.sum()


@register("conv")
class ConvBlock(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(nn.Conv2d(cin, cout, 3, padding=1), nn.ReLU())


@register("blurpool")
class BlurPool(nn.Module):
    """Halves the resolution after smoothing, channel by channel."""

    def __init__(self, channels, size=7, style="full"):
        super().__init__()
        self.pad = size // 2
        kernel = binomial(size)
        if style == "full":
            weight = torch.eye(channels)[:, :, None, None] * kernel
            self.groups = 1
        else:
            weight = kernel.expand(channels, 1, size, size).contiguous()
            self.groups = channels
        self.register_buffer("weight", weight)

    def forward(self, x):
        return F.conv2d(x, self.weight, stride=2, padding=self.pad, groups=self.groups)


def build(name, *args, **kwargs):
    return LAYERS[name](*args, **kwargs)
