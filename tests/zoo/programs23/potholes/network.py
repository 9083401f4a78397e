from torch import nn


def block(inputs, outputs, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class RoadNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            block(3, 16, 2),
            block(16, 24, 1),
            block(24, 40, 2),
            block(40, 48, 1),
            block(48, 72, 2),
            block(72, 80, 1),
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(80, classes)

    def forward(self, x):
        return self.classifier(self.pool(self.features(x)).flatten(1))
