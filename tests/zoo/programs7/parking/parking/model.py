from torch import nn


def conv(cin, cout, stride=1):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
    )


class CentreNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.stem = conv(3, width, 2)
        self.body = nn.Sequential(conv(width, 2 * width, 2), conv(2 * width, 2 * width))
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.heat = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        x = self.stem(x)
        return self.heat(x + self.up(self.body(x)))
