import torch
from torch import nn


def double_conv(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, channels=(16, 32, 64)):
        super().__init__()
        first, second, third = channels
        self.down1 = double_conv(1, first)
        self.down2 = double_conv(first, second)
        self.bottom = double_conv(second, third)
        self.up2 = nn.ConvTranspose2d(third, second, 2, stride=2)
        self.merge2 = double_conv(2 * second, second)
        self.up1 = nn.ConvTranspose2d(second, first, 2, stride=2)
        self.merge1 = double_conv(2 * first, first)
        self.out = nn.Conv2d(first, 1, 1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        x = self.bottom(self.pool(b))
        x = self.merge2(torch.cat([self.up2(x), b], dim=1))
        x = self.merge1(torch.cat([self.up1(x), a], dim=1))
        return self.out(x)
