from torch import nn


class ConvNet(nn.Module):
    def __init__(self, width, depth, n_classes=12):
        super().__init__()
        layers = [nn.Conv2d(3, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU()]
        for _ in range(depth):
            layers += [nn.Conv2d(width, width, 3, 1, 1), nn.BatchNorm2d(width), nn.ReLU()]
        self.trunk = nn.Sequential(*layers)
        self.head = nn.Linear(width, n_classes)

    def forward(self, x):
        return self.head(self.trunk(x).mean((2, 3)))
