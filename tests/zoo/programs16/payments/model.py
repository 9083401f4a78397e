import torch
from torch import nn

from graph import normalise


class GraphConv(nn.Module):
    def __init__(self, inputs, outputs, cached):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.cached = cached
        self.propagation = None

    def forward(self, x, adjacency):
        propagation = self.propagation
        if propagation is None:
            propagation = normalise(adjacency)
            if self.cached:
                self.propagation = propagation
        return propagation @ self.linear(x)


class FraudGCN(nn.Module):
    def __init__(self, features, width, cached):
        super().__init__()
        self.first = GraphConv(features, width, cached)
        self.second = GraphConv(width, width, cached)
        self.head = nn.Linear(width, 2)

    def forward(self, x, adjacency):
        h = torch.relu(self.first(x, adjacency))
        h = torch.relu(self.second(h, adjacency))
        return self.head(h)
