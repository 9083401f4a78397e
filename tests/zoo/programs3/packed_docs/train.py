"""Language model on short documents packed one after the other into each row."""

import argparse
import time

import torch
import torch.nn.functional as F
from masks import document_mask, document_mask_compared
from torch import nn


def make_corpus(rows, length, vocabulary):
    tokens = torch.randint(vocabulary, (rows, 1)) + torch.arange(length + 1) * 7
    tokens = (tokens + torch.randint(3, tokens.shape)) % vocabulary
    documents = (torch.rand(rows, length) < 0.06).cumsum(1)
    return tokens, documents


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, allowed):
        q, k, v = self.qkv(self.before(x)).unflatten(2, (3, self.heads, -1)).unbind(2)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed[:, None])
        x = x + self.proj(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x))


class LanguageModel(nn.Module):
    def __init__(self, vocabulary, length, width=128, depth=3):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(0.02 * torch.randn(length, width))
        self.layers = nn.ModuleList(Layer(width, 4) for _ in range(depth))
        self.out = nn.Linear(width, vocabulary)

    def forward(self, tokens, allowed):
        x = self.token(tokens) + self.position
        for layer in self.layers:
            x = layer(x, allowed)
        return self.out(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=96)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    mask = document_mask_compared if args.compare else document_mask
    tokens, documents = make_corpus(960, args.length, vocabulary=400)
    model = LanguageModel(400, args.length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for step in range(args.steps):
        rows = torch.randint(len(tokens), (args.batch,))
        allowed = mask(documents[rows])
        logits = model(tokens[rows, :-1], allowed)
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[rows, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 40 == 0:
            print(f"{step}: {loss.item():.3f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
