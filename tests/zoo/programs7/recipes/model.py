"""A small masked language model."""

import torch
from torch import nn


class MaskedModel(nn.Module):
    def __init__(self, vocabulary, width=128, depth=2, heads=4, length=48, gather=False):
        super().__init__()
        self.gather = gather
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens, masked):
        hidden = self.encoder(self.tokens(tokens) + self.positions)
        if self.gather:
            return self.head(hidden[masked])
        return self.head(hidden)[masked]
