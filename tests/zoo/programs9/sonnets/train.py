"""Letters of sonnets, one after the other: a small transformer."""

import time

import torch
from torch import nn
from torch.nn import functional as F

LETTERS, LENGTH, DIM = 64, 96, 128


class Attention(nn.Module):
    def __init__(self, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(b, t, DIM))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attention = Attention()
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(LETTERS, DIM)
        self.places = nn.Parameter(torch.zeros(LENGTH, DIM))
        self.blocks = nn.Sequential(Block(), Block())
        self.out = nn.Linear(DIM, LETTERS)

    def forward(self, ids):
        return self.out(self.blocks(self.letters(ids) + self.places))


torch.set_num_threads(1)
torch.manual_seed(0)
text = torch.randint(0, LETTERS, (50_000,))
model = Writer()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
steps = 80
start = time.perf_counter()
for step in range(steps):
    at = torch.randint(0, len(text) - LENGTH - 1, (12,))
    rows = at[:, None] + torch.arange(LENGTH + 1)
    ids = text[rows]
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(f"step {step + 1}: {loss.item():.3f}")
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
