import torch
from torch import nn

from severity.data import COLUMNS


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width)

    def forward(self, x):
        return x + self.outer(torch.relu(self.inner(self.norm(x))))


class SeverityNet(nn.Module):
    def __init__(self, width=512, depth=5):
        super().__init__()
        self.stem = nn.Linear(COLUMNS, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 1)

    def forward(self, columns):
        x = self.stem(columns)
        for block in self.blocks:
            x = block(x)
        return self.head(x).squeeze(-1)

    def layers(self):
        return [self.stem, *self.blocks, self.head]
