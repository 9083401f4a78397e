import torch
from torch import nn

from .graphs import BONDS, KINDS


class Pass(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Sequential(
            nn.Linear(3 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        )
        self.update = nn.GRUCell(width, width)

    def forward(self, h, bonds, batch):
        pair = torch.cat([h[batch.source], h[batch.target], bonds], 1)
        total = torch.zeros_like(h).index_add_(0, batch.target, self.message(pair))
        return self.update(total, h)


class MessagePassing(nn.Module):
    def __init__(self, width=80, rounds=3):
        super().__init__()
        self.atoms = nn.Embedding(KINDS, width)
        self.bonds = nn.Embedding(BONDS, width)
        self.rounds = nn.ModuleList(Pass(width) for _ in range(rounds))
        self.read = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, batch):
        h, bonds = self.atoms(batch.atoms), self.bonds(batch.bonds)
        for one in self.rounds:
            h = one(h, bonds, batch)
        atom = self.read(h)[:, 0]
        return torch.zeros(len(batch.value)).index_add_(0, batch.owner, atom)
