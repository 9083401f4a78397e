import torch
from torch import nn


def double(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.GroupNorm(4, outputs),
        nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.GroupNorm(4, outputs),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, classes, base=16):
        super().__init__()
        self.down1 = double(1, base)
        self.down2 = double(base, 2 * base)
        self.middle = double(2 * base, 4 * base)
        self.up2 = nn.ConvTranspose2d(4 * base, 2 * base, 2, stride=2)
        self.join2 = double(4 * base, 2 * base)
        self.up1 = nn.ConvTranspose2d(2 * base, base, 2, stride=2)
        self.join1 = double(2 * base, base)
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Conv2d(base, classes, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        x = self.up2(self.middle(self.pool(b)))
        x = self.up1(self.join2(torch.cat([x, b], dim=1)))
        return self.out(self.join1(torch.cat([x, a], dim=1)))
