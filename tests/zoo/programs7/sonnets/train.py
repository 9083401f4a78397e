"""A causal language model on verse, gradients accumulated over two micro-batches."""

import math
import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    vocabulary: int = 512
    context: int = 96
    width: int = 160
    heads: int = 4
    depth: int = 2
    micro: int = 6
    accumulate: int = 2
    updates: int = 80
    lr: float = 3e-4


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.n1, self.n2 = nn.LayerNorm(c.width), nn.LayerNorm(c.width)
        self.qkv = nn.Linear(c.width, 3 * c.width)
        self.proj = nn.Linear(c.width, c.width)
        self.mlp = nn.Sequential(
            nn.Linear(c.width, 4 * c.width), nn.GELU(), nn.Linear(4 * c.width, c.width)
        )

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.n2(x))


class Poet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tokens = nn.Embedding(c.vocabulary, c.width)
        self.places = nn.Embedding(c.context, c.width)
        self.blocks = nn.Sequential(*(Block(c) for _ in range(c.depth)))
        self.norm = nn.LayerNorm(c.width)

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        return self.norm(self.blocks(x)) @ self.tokens.weight.T


def sampler(text, c, generator):
    offsets = torch.arange(c.context + 1)
    while True:
        start = torch.randint(0, len(text) - c.context - 1, (c.micro, 1), generator=generator)
        rows = text[start + offsets]
        yield rows[:, :-1], rows[:, 1:]


def main():
    c = Config()
    torch.set_num_threads(1)
    torch.manual_seed(1616)
    text = torch.randint(0, c.vocabulary, (40_000,))
    model = Poet(c)
    optimizer = torch.optim.AdamW(model.parameters(), lr=c.lr, fused=True)
    t0 = time.perf_counter()
    micro = 0
    for ids, targets in sampler(text, c, torch.Generator().manual_seed(0)):
        logits = model(ids)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        (loss / c.accumulate).backward()
        micro += 1
        if micro % c.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if micro % 40 == 0:
            print(f"micro-batch {micro}: perplexity {math.exp(loss.item()):.1f}")
        if micro == c.accumulate * c.updates:
            break
    print(f"trained {micro} steps in {time.perf_counter() - t0:.3f} s")


main()
