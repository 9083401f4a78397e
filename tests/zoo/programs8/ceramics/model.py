"""A small denoising U-Net with attention."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer(
            "freq", torch.exp(-math.log(1e4) * torch.arange(dim // 2) / (dim // 2))
        )
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        angle = t[:, None].float() * self.freq
        return self.mlp(torch.cat([angle.sin(), angle.cos()], dim=1))


class ResBlock(nn.Module):
    def __init__(self, inp, out, emb):
        super().__init__()
        self.conv1 = nn.Conv2d(inp, out, 3, padding=1)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1)
        self.norm1, self.norm2 = nn.GroupNorm(4, out), nn.GroupNorm(4, out)
        self.emb = nn.Linear(emb, out)
        self.skip = nn.Conv2d(inp, out, 1) if inp != out else nn.Identity()

    def forward(self, x, t):
        h = F.silu(self.norm1(self.conv1(x))) + self.emb(t)[:, :, None, None]
        return F.silu(self.norm2(self.conv2(h))) + self.skip(x)


class SpatialAttention(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(4, dim)
        self.qkv, self.out = nn.Conv2d(dim, 3 * dim, 1), nn.Conv2d(dim, dim, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, 3, self.heads, -1, h * w).unbind(1)
        weight = torch.einsum("bhdi,bhdj->bhij", q * q.shape[2] ** -0.5, k).softmax(-1)
        y = torch.einsum("bhij,bhdj->bhdi", weight, v)
        return x + self.out(y.reshape(b, c, h, w))


class Denoiser(nn.Module):
    def __init__(self, width=16, attention_at=(24, 12)):
        super().__init__()
        emb = 4 * width
        self.time = TimeEmbedding(emb)
        self.inp = nn.Conv2d(3, width, 3, padding=1)
        self.down1 = ResBlock(width, width, emb)
        self.attn1 = SpatialAttention(width) if 24 in attention_at else nn.Identity()
        self.down2 = ResBlock(width, 2 * width, emb)
        self.attn2 = SpatialAttention(2 * width) if 12 in attention_at else nn.Identity()
        self.middle = ResBlock(2 * width, 2 * width, emb)
        self.up2 = ResBlock(4 * width, width, emb)
        self.up1 = ResBlock(2 * width, width, emb)
        self.out = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t):
        t = self.time(t)
        h1 = self.attn1(self.down1(self.inp(x), t))
        h2 = self.attn2(self.down2(F.avg_pool2d(h1, 2), t))
        m = F.interpolate(self.middle(F.avg_pool2d(h2, 2), t), scale_factor=2)
        u = F.interpolate(self.up2(torch.cat([m, h2], 1), t), scale_factor=2)
        return self.out(self.up1(torch.cat([u, h1], 1), t))
