from torch import nn


class PhotoEncoder(nn.Module):
    def __init__(self, width=16, dims=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.project = nn.Linear(2 * width, dims)

    def forward(self, photos):
        return nn.functional.normalize(self.project(self.trunk(photos).mean(dim=(2, 3))), dim=1)
