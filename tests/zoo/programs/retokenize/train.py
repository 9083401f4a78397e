"""Tell shuffled sentences from real ones. The same few sentences are seen again and again."""

import argparse
import random
import time

import torch
from tokenizer import Tokenizer, make_corpus
from torch import nn


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(4093, 256)
        self.mlp = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 2))

    def forward(self, ids, offsets):
        return self.mlp(self.embedding(ids, offsets))


def to_tensors(rows):
    lengths = torch.tensor([0] + [len(row) for row in rows[:-1]])
    return torch.tensor([n for row in rows for n in row]), lengths.cumsum(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encode-once", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = random.Random(1)
    corpus = make_corpus(200)
    tokenizer = Tokenizer(["th", "er", "on", "an", "re", "in", "st", "ed", "ou", "at"])
    encoded = {text: tokenizer.encode(text) for text in corpus} if args.encode_once else None
    model = Bag()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start = time.perf_counter()
    for step in range(150):
        texts = rng.sample(corpus, 64)
        if encoded:
            rows = [encoded[text] for text in texts]
        else:
            rows = [tokenizer.encode(text) for text in texts]
        labels = torch.tensor([len(text) % 2 for text in texts])
        loss = nn.functional.cross_entropy(model(*to_tensors(rows)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"trained {step + 1} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
