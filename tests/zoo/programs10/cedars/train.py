"""A character model of forestry notes; the gradients of several batches make an update."""

import argparse
import time

import torch
from torch import nn

SYMBOLS = 80
LENGTH = 96


class Notes(nn.Module):
    def __init__(self, dim=128, layers=2):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, dim)
        self.place = nn.Embedding(LENGTH, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.out = nn.Linear(dim, SYMBOLS)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))
        self.register_buffer("places", torch.arange(LENGTH))

    def forward(self, text):
        x = self.embed(text) + self.place(self.places)
        return self.out(self.layers(x, mask=self.mask, is_causal=True))


def batches(corpus, count, size):
    window = torch.arange(LENGTH + 1)
    for _ in range(count):
        starts = torch.randint(len(corpus) - LENGTH - 1, (size, 1))
        text = corpus[starts + window]
        yield text[:, :-1], text[:, 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--accumulate", type=int, default=4)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(210)
    corpus = torch.randint(1, 5, (100_000,)).cumsum(dim=0) % SYMBOLS
    model = Notes()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    started = time.perf_counter()
    for number, (text, following) in enumerate(
        batches(corpus, args.batches, args.batch_size), start=1
    ):
        scores = model(text)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())
        (loss / args.accumulate).backward()
        if number % args.accumulate == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        if number % 16 == 0:
            print(f"batch {number}: loss {loss.item():.4f}")
    print(f"trained {args.batches} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
