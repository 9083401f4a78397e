"""A character transformer trained on growing windows, compiled."""

import argparse
import time

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class Poet(nn.Module):
    def __init__(self, letters=64, width=128, depth=2, context=160):
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.places = nn.Parameter(torch.randn(context, width) * 0.02)
        self.blocks = nn.Sequential(*[Block(width, 4) for _ in range(depth)])
        self.out = nn.Linear(width, letters)

    def forward(self, ids):
        return self.out(self.blocks(self.letters(ids) + self.places[: ids.shape[1]]))


def windows(text, steps, batch, first, last):
    for step in range(steps):
        length = first + (last - first) * step // steps
        starts = torch.randint(len(text) - length - 1, (batch, 1))
        chunk = text[starts + torch.arange(length + 1)]
        yield chunk[:, :-1], chunk[:, 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--first", type=int, default=48)
    parser.add_argument("--last", type=int, default=64)
    parser.add_argument("--dynamic", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch._dynamo.config.recompile_limit = 64

    text = torch.randint(64, (60_000,))
    model = Poet()
    forward = torch.compile(model, backend="aot_eager", dynamic=args.dynamic)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    start = time.perf_counter()
    for step, (x, y) in enumerate(windows(text, args.steps, 8, args.first, args.last)):
        loss = nn.functional.cross_entropy(forward(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step} window {x.shape[1]} loss {loss.item():.3f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
