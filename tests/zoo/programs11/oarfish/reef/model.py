from torch import nn


class ReefNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 24, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 48, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(48, 96, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.classify = nn.Linear(96, classes)

    def forward(self, x):
        return self.classify(self.features(x).mean(dim=(2, 3)))
