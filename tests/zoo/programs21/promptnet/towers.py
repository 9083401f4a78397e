import math

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.ln2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class TextTower(nn.Module):
    def __init__(self, vocab=512, length=16, dim=128, depth=4, out=64):
        super().__init__()
        self.token = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.randn(length, dim) / math.sqrt(dim))
        self.blocks = nn.Sequential(*[Block(dim, 4) for _ in range(depth)])
        self.ln = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, out, bias=False)

    def forward(self, ids):
        x = self.blocks(self.token(ids) + self.pos[: ids.shape[1]])
        return self.out(self.ln(x)[:, -1])


class ImageTower(nn.Module):
    def __init__(self, size=48, patch=8, dim=128, depth=4, out=64):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, patch, patch)
        self.pos = nn.Parameter(torch.randn((size // patch) ** 2, dim) / math.sqrt(dim))
        self.blocks = nn.ModuleList([Block(dim, 4) for _ in range(depth)])
        self.ln = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, out, bias=False)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.out(self.ln(x).mean(1))
