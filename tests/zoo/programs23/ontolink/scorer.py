import torch
from torch import nn


class LinkScorer(nn.Module):
    """Completes (head, relation, ?) with a small network over the concept vectors."""

    def __init__(self, concepts, relations, dim=48, width=320):
        super().__init__()
        self.concept = nn.Embedding(concepts, dim)
        self.relation = nn.Embedding(relations, dim)
        self.body = nn.Sequential(
            nn.Linear(2 * dim, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, dim),
        )

    def query(self, head, relation):
        return self.body(torch.cat([self.concept(head), self.relation(relation)], dim=1))

    def forward(self, head, relation, tail):
        return self.query(head, relation) @ self.concept(tail).T
