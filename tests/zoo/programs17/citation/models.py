import torch
import torch.nn as nn
import torch.nn.functional as F


class GraphConvolution(nn.Module):
    def __init__(self, fin, fout):
        super().__init__()
        self.linear = nn.Linear(fin, fout, bias=False)

    def forward(self, x, a):
        return a @ self.linear(x)


def normalize_adj(adj):
    a = adj + torch.eye(adj.shape[0])
    d = torch.diag(a.sum(1).pow(-0.5))
    return d @ a @ d


class GCN(nn.Module):
    def __init__(self, fin, hidden, classes, normalized_input):
        super().__init__()
        self.gc1 = GraphConvolution(fin, hidden)
        self.gc2 = GraphConvolution(hidden, hidden)
        self.gc3 = GraphConvolution(hidden, classes)
        self.normalized_input = normalized_input

    def forward(self, x, adj):
        if not self.normalized_input:
            adj = normalize_adj(adj)
        x = F.relu(self.gc1(x, adj))
        x = F.relu(self.gc2(x, adj))
        return self.gc3(x, adj)
