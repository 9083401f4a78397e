import torch
from torch import nn


class Message(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.edge = nn.Sequential(
            nn.Linear(2 * width + 1, width), nn.SiLU(), nn.Linear(width, width)
        )
        self.node = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, h, edges, orders):
        source, target = edges
        messages = self.edge(torch.cat([h[source], h[target], orders[:, None]], dim=1))
        pooled = torch.zeros_like(h).index_add(0, target, messages)
        return h + self.node(torch.cat([h, pooled], dim=1))


class MoleculeNet(nn.Module):
    def __init__(self, features, width, depth):
        super().__init__()
        self.embed = nn.Linear(features, width)
        self.layers = nn.ModuleList(Message(width) for _ in range(depth))
        self.readout = nn.Linear(width, 1)

    def forward(self, atoms, edges, orders, graph, graphs):
        h = self.embed(atoms)
        for layer in self.layers:
            h = layer(h, edges, orders)
        pooled = torch.zeros(graphs, h.shape[1]).index_add(0, graph, h)
        return self.readout(pooled).squeeze(1)
