from torch import nn
from torch.nn import functional as F

from .layers import build


class Segmenter(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.enc1 = build("conv", 3, 24)
        self.pool = nn.MaxPool2d(2)
        self.enc2 = build("conv", 24, 64)
        self.down = build("blurpool", 64, style=cfg.blur)
        self.mid = build("conv", 64, 64)
        self.dec = build("conv", 64, 24)
        self.head = nn.Conv2d(24, cfg.classes, 1)

    def forward(self, x):
        a = self.enc2(self.pool(self.enc1(x)))
        b = self.mid(self.down(a))
        b = F.interpolate(b, scale_factor=2.0)
        y = self.head(self.dec(a + b))
        return F.interpolate(y, scale_factor=2.0)
