import torch
from torch import nn


class TextTower(nn.Module):
    """Made before, not trained here."""

    def __init__(self, vocabulary=300, width=128, depth=4, out=64):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True)
        self.trunk = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.out = nn.Linear(width, out)

    def forward(self, prompts):
        return nn.functional.normalize(self.out(self.trunk(self.tokens(prompts)).mean(1)), dim=1)


class ImageTower(nn.Module):
    def __init__(self, out=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 32, 4, stride=2, padding=1),
            nn.GELU(),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(64, 96, 4, stride=2, padding=1),
            nn.GELU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(96, out),
        )
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, pictures):
        return self.scale.exp() * nn.functional.normalize(self.net(pictures), dim=1)
