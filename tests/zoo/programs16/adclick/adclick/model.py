import torch
from torch import nn

from .layers import INTERACTIONS


class DeepFM(nn.Module):
    def __init__(self, fields, buckets, dims, hidden, interaction):
        super().__init__()
        self.register_buffer("offsets", torch.arange(fields) * buckets)
        self.embedding = nn.Embedding(fields * buckets, dims)
        self.interaction = INTERACTIONS[interaction](fields)
        self.deep = nn.Sequential(
            nn.Linear(fields * dims, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )
        self.output = nn.Linear(dims, 1)

    def forward(self, features):
        v = self.embedding(features + self.offsets)
        return (self.output(self.interaction(v)) + self.deep(v.flatten(1))).squeeze(1)
