import torch
from torch import nn


class BlurPool(nn.Module):
    """Fixed binomial filter before subsampling (anti-aliasing)."""

    def __init__(self, channels, per_channel):
        super().__init__()
        row = torch.tensor([1.0, 6.0, 15.0, 20.0, 15.0, 6.0, 1.0])
        kernel = torch.outer(row, row) / row.sum() ** 2
        self.groups = channels if per_channel else 1
        if per_channel:
            weight = kernel.expand(channels, 1, 7, 7)
        else:
            weight = torch.zeros(channels, channels, 7, 7)
            weight[torch.arange(channels), torch.arange(channels)] = kernel
        self.register_buffer("weight", weight.contiguous())

    def forward(self, x):
        return nn.functional.conv2d(x, self.weight, stride=2, padding=3, groups=self.groups)


class LeafNet(nn.Module):
    def __init__(self, classes=15, per_channel=False):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())
        self.blur = BlurPool(32, per_channel)
        self.stage1 = nn.Sequential(
            nn.Conv2d(32, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.stage2 = nn.Sequential(nn.Conv2d(48, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU())
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        x = self.stage1(self.blur(self.stem(x)))
        return self.head(self.stage2(x).mean(dim=(2, 3)))
