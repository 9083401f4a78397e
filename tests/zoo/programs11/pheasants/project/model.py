from torch import nn


class PlumageNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.layer1 = nn.Conv2d(3, 32, 3, padding=1)
        self.layer2 = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.layer3 = nn.Conv2d(64, 96, 3, stride=2, padding=1)
        self.relu = nn.ReLU()
        self.fc = nn.Linear(96, classes)

    def forward(self, x):
        x = self.relu(self.layer1(x))
        x = self.relu(self.layer2(x))
        x = self.relu(self.layer3(x))
        return self.fc(x.mean(dim=(2, 3)))
