from torch import nn


class Encoder(nn.Module):
    def __init__(self, width=24, dims=512):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.project = nn.Linear(2 * width * 9, dims)

    def forward(self, images):
        return nn.functional.normalize(self.project(self.trunk(images)), dim=1)
