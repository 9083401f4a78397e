import torch
from torch import nn


def double(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(o, o, 3, padding=1),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, base=8):
        super().__init__()
        self.enc1, self.enc2, self.enc3 = (
            double(1, base),
            double(base, 2 * base),
            double(2 * base, 4 * base),
        )
        self.up2 = nn.ConvTranspose2d(4 * base, 2 * base, 2, 2)
        self.dec2 = double(4 * base, 2 * base)
        self.up1 = nn.ConvTranspose2d(2 * base, base, 2, 2)
        self.dec1 = double(2 * base, base)
        self.out = nn.Conv2d(base, 1, 1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(self.pool(a))
        c = self.enc3(self.pool(b))
        b = self.dec2(torch.cat([self.up2(c), b], 1))
        a = self.dec1(torch.cat([self.up1(b), a], 1))
        return self.out(a)[:, 0]
