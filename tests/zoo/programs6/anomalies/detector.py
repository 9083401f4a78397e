"""Deep one-class description: embeddings are drawn towards the centre of all that was seen."""

import torch
from torch import nn


class History:
    def __init__(self):
        self.seen = []

    def update(self, z):
        self.seen.append(z.detach())

    def centre(self):
        return torch.cat(self.seen).mean(0)


class RunningMean:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, z):
        self.total = self.total + z.detach().sum(0)
        self.count += len(z)

    def centre(self):
        return self.total / self.count


class Encoder(nn.Module):
    def __init__(self, inputs=64, width=384):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, 512, bias=False),
            nn.LeakyReLU(0.1),
            nn.Linear(512, width, bias=False),
        )

    def forward(self, x):
        return self.layers(x)
