import torch
from torch import nn


class QuakeAttention(nn.Module):
    """Attention in which time and distance between two events count."""

    def __init__(self, dim=64, heads=4):
        super().__init__()
        self.heads = heads
        self.embed = nn.Linear(4, dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.bias = nn.Sequential(nn.Linear(2, 16), nn.GELU(), nn.Linear(16, heads))
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.out = nn.Linear(dim, 4)

    def forward(self, events, gaps, mask):
        x = self.embed(events)
        b, n, dim = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        bias = self.bias(torch.log1p(gaps)).permute(0, 3, 1, 2)
        future = torch.ones(n, n, dtype=torch.bool).triu(1)
        bias = bias.masked_fill(future | ~mask[:, None, None], -1e4)
        x = x + nn.functional.scaled_dot_product_attention(q, k, v, bias).transpose(1, 2).reshape(
            b, n, dim
        )
        return self.out(x + self.mlp(x))
