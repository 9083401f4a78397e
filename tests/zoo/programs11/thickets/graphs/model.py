import torch
from torch import nn


class Conv(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, dim))

    def forward(self, x, adjacency):
        return x + torch.sparse.mm(adjacency, self.mlp(x))


class GraphNet(nn.Module):
    def __init__(self, dim=128, hidden=384, depth=2, classes=2):
        super().__init__()
        self.convs = nn.ModuleList(Conv(dim, hidden) for _ in range(depth))
        self.head = nn.Linear(dim, classes)

    def forward(self, x, adjacency):
        for conv in self.convs:
            x = conv(x, adjacency)
        return self.head(x)
