"""The network's stations and tracks, and message passing along them."""

import torch
import torch.nn as nn


def build(stations=600, tracks=4, seed=0):
    g = torch.Generator().manual_seed(seed)
    source = torch.arange(stations).repeat_interleave(tracks)
    target = torch.randint(0, stations, (stations * tracks,), generator=g)
    return torch.stack([torch.cat([source, target]), torch.cat([target, source])])


class Messages(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.own, self.others = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, edges, degree):
        source, target = edges
        inbox = torch.zeros_like(x).index_add(1, target, self.others(x)[:, source])
        return x + self.norm(torch.relu(self.own(x) + inbox / degree))
