"""A model of plays that knows who is speaking."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

SPEAKER, CUE = 1, 2


def audible(tokens):
    """Which tokens each token may look at: its own speech, and the names and cues before it."""
    masks = []
    for row in tokens.tolist():
        speech, current = [], 0
        for token in row:
            if token == SPEAKER:
                current += 1
            speech.append(current)
        mask = []
        for i in range(len(row)):
            line = []
            for j in range(len(row)):
                same = speech[i] == speech[j]
                line.append(j <= i and (same or row[j] in (SPEAKER, CUE)))
            mask.append(line)
        masks.append(mask)
    return torch.tensor(masks)


def audible_by_comparison(tokens):
    speech = (tokens == SPEAKER).cumsum(1)
    same = speech[:, :, None] == speech[:, None, :]
    signal = (tokens == SPEAKER) | (tokens == CUE)
    return (same | signal[:, None, :]).tril()


class Scene(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width)
        )

    def forward(self, x, mask):
        n, t, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        heard = scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None])
        return x + self.mlp(heard.transpose(1, 2).reshape(n, t, w))


class ScriptModel(nn.Module):
    def __init__(self, vocabulary=400, width=96, heads=4, mask=audible):
        super().__init__()
        self.mask = mask
        self.words = nn.Embedding(vocabulary, width)
        self.scene = Scene(width, heads)
        self.out = nn.Linear(width, 200)

    def forward(self, tokens):
        mask = self.mask(tokens)
        return self.out(self.scene(self.words(tokens), mask))
