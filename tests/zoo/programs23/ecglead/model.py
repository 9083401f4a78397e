import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.norm = nn.GroupNorm(4, channels)
        self.first = nn.Conv1d(channels, channels, 5, padding=2 * dilation, dilation=dilation)
        self.second = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(torch.relu(self.norm(x)))))


class RhythmNet(nn.Module):
    def __init__(self, leads=2, channels=48, classes=3):
        super().__init__()
        self.stem = nn.Conv1d(leads, channels, 9, stride=4, padding=4)
        self.body = nn.ModuleList(Residual(channels, d) for d in (1, 2, 4, 8))
        self.out = nn.Linear(2 * channels, classes)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.body:
            x = layer(x)
        return self.out(torch.cat([x.mean(dim=2), x.amax(dim=2)], dim=1))
