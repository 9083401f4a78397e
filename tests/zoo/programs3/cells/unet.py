import torch
from torch import nn


def double(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.down1 = double(1, width)
        self.down2 = double(width, 2 * width)
        self.bottom = double(2 * width, 4 * width)
        self.pool = nn.MaxPool2d(2)
        self.lift2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.up2 = double(4 * width, 2 * width)
        self.lift1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.up1 = double(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(self.pool(first))
        h = self.bottom(self.pool(second))
        h = self.up2(torch.cat([self.lift2(h), second], 1))
        return self.out(self.up1(torch.cat([self.lift1(h), first], 1)))
