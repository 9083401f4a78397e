import torch
from torch import nn


class Ranker(nn.Module):
    def __init__(self, vocabulary=1000, width=64, layers=8):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(width, 1)

    def forward(self, tokens):
        return self.out(self.layers(self.embed(tokens)).mean(dim=1))[:, 0]


def loss_of(scores):
    """The first of each pair is the reply that was given."""
    given, other = scores.view(-1, 2).unbind(dim=1)
    return torch.nn.functional.softplus(other - given).mean()
