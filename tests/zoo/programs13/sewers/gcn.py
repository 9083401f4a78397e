import torch
from torch import nn


class Town(nn.Module):
    """Holds the graph and hands out the operators that mix neighbouring shafts."""

    def __init__(self, edges, length, shafts, hops, keep):
        super().__init__()
        self.shafts, self.hops = shafts, hops
        self.register_buffer("edges", edges)
        self.register_buffer("length", length)
        self.kept = self.operators() if keep else None

    def operators(self):
        weight = torch.exp(-self.length / self.length.mean())
        a = torch.eye(self.shafts)
        a[self.edges[0], self.edges[1]] = weight
        a[self.edges[1], self.edges[0]] = weight
        scale = a.sum(1).rsqrt()
        a = scale[:, None] * a * scale[None]
        powers = [a]
        for _ in range(self.hops - 1):
            powers.append(powers[-1] @ a)
        return torch.stack(powers)

    def forward(self):
        return self.operators() if self.kept is None else self.kept


class Diffuse(nn.Module):
    def __init__(self, inputs, outputs, hops):
        super().__init__()
        self.linear = nn.Linear(inputs * (hops + 1), outputs)

    def forward(self, x, operators):
        mixed = [x, *[torch.matmul(a, x) for a in operators]]
        return self.linear(torch.cat(mixed, -1))


class LevelNet(nn.Module):
    def __init__(self, town, past, width=32):
        super().__init__()
        self.town = town
        self.first = Diffuse(past, width, town.hops)
        self.second = Diffuse(width, width, town.hops)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        operators = self.town()
        x = torch.relu(self.first(x, operators))
        x = x + torch.relu(self.second(x, operators))
        return self.out(x)[..., 0]
