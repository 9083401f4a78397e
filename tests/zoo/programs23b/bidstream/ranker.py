import torch
from torch import nn


class CrossLayer(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, width)

    def forward(self, first, inputs):
        return first * self.up(self.down(inputs)) + inputs


class ClickRanker(nn.Module):
    """Deep and cross, side by side."""

    def __init__(self, buckets, fields, numbers, dim=8, hidden=384, crosses=2):
        super().__init__()
        self.embed = nn.Embedding(buckets, dim)
        width = fields * dim + numbers
        self.crosses = nn.ModuleList(CrossLayer(width, 64) for _ in range(crosses))
        self.deep = nn.Sequential(
            nn.Linear(width, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
        )
        self.head = nn.Linear(width + hidden, 1)

    def forward(self, ids, numbers):
        first = torch.cat([self.embed(ids).flatten(1), numbers], dim=1)
        crossed = first
        for cross in self.crosses:
            crossed = cross(first, crossed)
        return self.head(torch.cat([crossed, self.deep(first)], dim=1)).squeeze(1)
