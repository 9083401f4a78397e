import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, sensors, width):
        super().__init__()
        self.seed = nn.Linear(sensors, width * 8 * 8)
        self.width = width
        self.grow = nn.Sequential(
            nn.ConvTranspose2d(width, width, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(width, width // 2, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(width // 2, 1, 3, padding=1),
        )

    def forward(self, readings):
        x = torch.relu(self.seed(readings)).view(-1, self.width, 8, 8)
        return self.grow(x)
