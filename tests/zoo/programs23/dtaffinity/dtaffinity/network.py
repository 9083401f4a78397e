import torch
from torch import nn

from .assays import FINGERPRINT, RESIDUES


class CompoundEncoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(FINGERPRINT, 512),
            nn.GELU(),
            nn.LayerNorm(512),
            nn.Linear(512, 512),
            nn.GELU(),
            nn.Linear(512, width),
        )

    def forward(self, fingerprints):
        return self.layers(fingerprints)


class ProteinEncoder(nn.Module):
    def __init__(self, width, channels=40):
        super().__init__()
        self.embed = nn.Embedding(RESIDUES, channels)
        self.convs = nn.ModuleList(
            nn.Conv1d(channels, channels, 5, padding=2, stride=stride) for stride in (2, 1, 1)
        )
        self.out = nn.Linear(channels, width)

    def forward(self, residues):
        x = self.embed(residues).transpose(1, 2)
        for conv in self.convs:
            x = torch.relu(conv(x))
        return self.out(x.amax(dim=2))


class ProductFusion(nn.Module):
    """Both sides are projected, multiplied and mixed."""

    def __init__(self, left, right, out, rank=96):
        super().__init__()
        self.left = nn.Linear(left, rank)
        self.right = nn.Linear(right, rank)
        self.mix = nn.Linear(rank, out)

    def forward(self, a, b):
        return self.mix(self.left(a) * self.right(b))


class AffinityNet(nn.Module):
    def __init__(self, fusion="bilinear", width=96, joint=64):
        super().__init__()
        self.compound = CompoundEncoder(width)
        self.protein = ProteinEncoder(width)
        make = {"bilinear": nn.Bilinear, "product": ProductFusion}[fusion]
        self.fusion = make(width, width, joint)
        self.head = nn.Sequential(nn.LayerNorm(joint), nn.GELU(), nn.Linear(joint, 1))

    def forward(self, fingerprints, residues):
        pair = self.fusion(self.compound(fingerprints), self.protein(residues))
        return self.head(pair).squeeze(1) + 6.0
