import torch
from torch import nn


class Config:
    vocabulary = 256
    context = 64
    width = 128
    heads = 4
    depth = 3


class TinyLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.token = nn.Embedding(config.vocabulary, config.width)
        self.position = nn.Embedding(config.context, config.width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                config.width,
                config.heads,
                4 * config.width,
                dropout=0.1,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.head.weight = self.token.weight
        nn.init.normal_(self.token.weight, std=0.02)
        mask = nn.Transformer.generate_square_subsequent_mask(config.context)
        self.register_buffer("mask", mask, persistent=False)
        self.register_buffer("places", torch.arange(config.context), persistent=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.position(self.places)
        for layer in self.layers:
            x = layer(x, src_mask=self.mask, is_causal=True)
        return self.head(self.norm(x))
