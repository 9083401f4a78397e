import math

import torch
from torch import nn
from transcripts import DESKS, PAD, VOCABULARY


class Positions(nn.Module):
    def __init__(self, width, longest=512):
        super().__init__()
        position = torch.arange(longest).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(longest, width)
        table[:, 0::2] = torch.sin(position * rate)
        table[:, 1::2] = torch.cos(position * rate)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        return x + self.table[: x.shape[1]]


class GatedBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.conv = nn.Conv1d(width, 2 * width, 3, padding=1)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        value, gate = self.conv(self.norm(x).transpose(1, 2)).transpose(1, 2).chunk(2, dim=-1)
        return x + self.out(value * torch.sigmoid(gate))


class Router(nn.Module):
    def __init__(self, width=96, depth=3):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width, padding_idx=PAD)
        self.positions = Positions(width)
        self.blocks = nn.ModuleList(GatedBlock(width) for _ in range(depth))
        self.head = nn.Linear(width, DESKS)

    def forward(self, words):
        present = (words != PAD).unsqueeze(-1).float()
        x = self.positions(self.embed(words))
        for block in self.blocks:
            x = block(x)
        return self.head((x * present).sum(1) / present.sum(1))
