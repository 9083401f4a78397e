import torch
from torch import nn


class Sorter(nn.Module):
    def __init__(self, vocab_size, width, classes, longest=512):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width, padding_idx=0)
        self.positions = nn.Embedding(longest, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        padding = ids == 0
        h = self.encoder(x, src_key_padding_mask=padding)
        h = h.masked_fill(padding.unsqueeze(2), 0.0).sum(1) / (~padding).sum(1, keepdim=True)
        return self.head(h)
