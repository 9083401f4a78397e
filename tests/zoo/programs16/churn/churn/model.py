import torch
from torch import nn


class TabularTransformer(nn.Module):
    """Every column of a customer's record is a token."""

    def __init__(self, numeric, categorical, levels, width):
        super().__init__()
        self.register_buffer("offsets", torch.arange(categorical) * levels)
        self.levels = nn.Embedding(categorical * levels, width)
        self.scale = nn.Parameter(torch.randn(numeric, width) * 0.1)
        self.shift = nn.Parameter(torch.zeros(numeric, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1)

    def forward(self, numbers, codes):
        tokens = torch.cat(
            [numbers.unsqueeze(2) * self.scale + self.shift, self.levels(codes + self.offsets)],
            dim=1,
        )
        return self.head(self.encoder(tokens).mean(dim=1)).squeeze(1)
