"""Graph convolutions on a citation graph, full batch (after Kipf and Welling)."""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def normalize_adjacency(adj):
    """Return D^-1/2 (A + I) D^-1/2."""
    adj = adj + torch.eye(adj.shape[0])
    degree = torch.diag(adj.sum(1).pow(-0.5))
    return degree @ adj @ degree


class GraphConvolution(nn.Module):
    def __init__(self, inp, out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inp, out))
        self.bias = nn.Parameter(torch.zeros(out))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return adj @ (x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, features, hidden, classes, prepared=False):
        super().__init__()
        self.prepared = prepared
        self.gc1 = GraphConvolution(features, hidden)
        self.gc2 = GraphConvolution(hidden, hidden)
        self.gc3 = GraphConvolution(hidden, classes)

    def forward(self, x, adj):
        if not self.prepared:
            adj = normalize_adjacency(adj)
        x = F.dropout(F.relu(self.gc1(x, adj)), 0.5, self.training)
        x = F.dropout(F.relu(self.gc2(x, adj)), 0.5, self.training)
        return self.gc3(x, adj)


def make_graph(papers=850, features=512, fields=7):
    field = torch.randint(0, fields, (papers,))
    same = field[:, None] == field[None]
    adj = (torch.rand(papers, papers) < torch.where(same, 0.02, 0.002)).float()
    adj = torch.maximum(adj, adj.T)
    x = torch.randn(papers, features) + F.one_hot(field, features) * 2.0
    return x, adj, field


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prepared", action="store_true")
    parser.add_argument("--epochs", type=int, default=100)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, adj, field = make_graph()
    train = torch.rand(len(x)) < 0.3
    if args.prepared:
        adj = normalize_adjacency(adj)
    model = GCN(x.shape[1], 192, 7, args.prepared)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    start = time.perf_counter()
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, adj)[train], field[train])
        loss.backward()
        optimizer.step()
        if epoch % 25 == 0:
            print(f"Epoch: {epoch:04d} loss_train: {loss.item():.4f}")
    print(f"trained {args.epochs} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
