import math

import torch
from torch import nn
from torch.nn import functional as F


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000.0) * torch.arange(half) / half)
    angles = t[:, None].float() * freqs
    return torch.cat([angles.sin(), angles.cos()], 1)


class ResBlock(nn.Module):
    def __init__(self, inputs, outputs, emb):
        super().__init__()
        self.norm1 = nn.GroupNorm(4, inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.emb = nn.Linear(emb, outputs)
        self.norm2 = nn.GroupNorm(4, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x))) + self.emb(emb)[..., None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class SpatialAttention(nn.Module):
    def __init__(self, channels, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(4, channels)
        self.qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.proj = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        qkv = self.qkv(self.norm(x)).view(b, 3, self.heads, c // self.heads, h * w)
        q, k, v = qkv.unbind(1)
        scores = torch.einsum("bncq,bnck->bnqk", q, k) / math.sqrt(c // self.heads)
        out = torch.einsum("bnqk,bnck->bncq", scores.softmax(-1), v)
        return x + self.proj(out.reshape(b, c, h, w))


class Denoiser(nn.Module):
    def __init__(self, width=24, attn_at="full"):
        super().__init__()
        emb = 64
        self.attn_at = attn_at
        self.time = nn.Sequential(nn.Linear(32, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.enc1 = ResBlock(width, width, emb)
        self.enc2 = ResBlock(width, 2 * width, emb)
        self.attn = SpatialAttention(width if attn_at == "full" else 2 * width)
        self.mid = ResBlock(2 * width, 2 * width, emb)
        self.dec = ResBlock(3 * width, width, emb)
        self.out = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, t):
        emb = self.time(timestep_embedding(t, 32))
        a = self.enc1(self.stem(x), emb)
        if self.attn_at == "full":
            a = self.attn(a)
        b = self.enc2(F.avg_pool2d(a, 4), emb)
        if self.attn_at == "bottom":
            b = self.attn(b)
        b = F.interpolate(self.mid(b, emb), scale_factor=4.0)
        return self.out(self.dec(torch.cat([a, b], 1), emb))
