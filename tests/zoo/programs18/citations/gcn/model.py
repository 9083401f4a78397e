import torch.nn.functional as F
from torch import nn

from .layers import GraphConvolution, normalize


class GCN(nn.Module):
    def __init__(self, features, hidden, classes, prepared=False):
        super().__init__()
        self.first = GraphConvolution(features, hidden)
        self.second = GraphConvolution(hidden, classes)
        self.prepared = prepared

    def forward(self, x, adjacency):
        a = adjacency if self.prepared else normalize(adjacency)
        x = F.dropout(F.relu(self.first(x, a)), 0.5, self.training)
        return self.second(x, a)
