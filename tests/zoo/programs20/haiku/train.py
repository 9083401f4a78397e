"""Question 27: a tiny transformer writes the next letter."""

import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F

LETTERS, LENGTH, WIDTH = 64, 64, 96


class Layer(nn.Module):
    def __init__(self, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.join = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.wide = nn.Sequential(
            nn.Linear(WIDTH, 3 * WIDTH), nn.ReLU(), nn.Linear(3 * WIDTH, WIDTH)
        )

    def forward(self, x):
        rows, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(rows, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.join(seen.transpose(1, 2).reshape(rows, length, width))
        return x + self.wide(self.norm2(x))


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(LETTERS, WIDTH)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.layers = nn.Sequential(Layer(), Layer())
        self.out = nn.Linear(WIDTH, LETTERS)

    def forward(self, text):
        return self.out(self.layers(self.letters(text) + self.places))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=130)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(27)
    poems = torch.randint(0, LETTERS, (800, LENGTH + 1))
    model = Writer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    start = time.perf_counter()
    for _ in range(args.steps):
        text = poems[torch.randint(0, len(poems), (20,))]
        scores = model(text[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
