"""Star rating of product reviews."""

import argparse
import re
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
MAX_LEN = 64


class Reviews(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(11)
        syllables = ["ba", "ko", "ri", "tel", "mun", "sha", "ver", "on", "ism", "gra", "plu", "ent"]
        words = ["".join(rng.choice(syllables, rng.integers(2, 5))) for _ in range(3000)]
        self.words = words
        self.texts = [
            " ".join(words[j] + (", " if j % 7 == 0 else "") for j in rng.integers(0, 3000, 600))
            for _ in range(n)
        ]
        self.stars = rng.integers(0, 5, n).tolist()

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i], self.stars[i]


class Tokenizer:
    """Greedy longest-piece tokenizer."""

    def __init__(self):
        pieces = [
            "ba",
            "ko",
            "ri",
            "tel",
            "mun",
            "sha",
            "ver",
            "on",
            "ism",
            "gra",
            "plu",
            "ent",
            ",",
        ]
        both = [a + b for a in pieces[:-1] for b in pieces[:-1]]
        self.ids = {p: i + 2 for i, p in enumerate(pieces + both)}
        self.longest = max(map(len, self.ids))

    def encode(self, text):
        out = []
        for word in re.findall(r"\w+|,", text.lower()):
            at = 0
            while at < len(word):
                for end in range(min(len(word), at + self.longest), at, -1):
                    piece = self.ids.get(word[at:end])
                    if piece is not None:
                        out.append(piece)
                        at = end
                        break
                else:
                    out.append(1)
                    at += 1
        return out

    def __call__(self, texts):
        rows = [self.encode(t)[:MAX_LEN] for t in texts]
        return torch.tensor([r + [0] * (MAX_LEN - len(r)) for r in rows])

    @property
    def size(self):
        return len(self.ids) + 2


class Rater(nn.Module):
    def __init__(self, vocab, d=64):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.position = nn.Parameter(torch.zeros(MAX_LEN, d))
        layer = nn.TransformerEncoderLayer(d, 4, 128, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(d, 5)

    def forward(self, ids):
        return self.out(self.encoder(self.embed(ids) + self.position).mean(1))


class EncodedBatch:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, batch):
        return self.tokenizer([t for t, _ in batch]), torch.tensor([s for _, s in batch])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100)
    ap.add_argument("--encode-in", choices=["loop", "loader"], default="loop")
    args = ap.parse_args()
    torch.manual_seed(0)
    tokenizer = Tokenizer()
    collate = EncodedBatch(tokenizer) if args.encode_in == "loader" else None
    loader = DataLoader(
        Reviews(args.steps * 32), batch_size=32, shuffle=True, num_workers=1, collate_fn=collate
    )
    model = Rater(tokenizer.size)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    began, n = time.perf_counter(), 0
    for inputs, stars in loader:
        if not torch.is_tensor(inputs):
            inputs = tokenizer(inputs)
        loss = nn.functional.cross_entropy(model(inputs), stars)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        n += 1
    print(f"loss {loss.item():.3f}")
    print(f"trained {n} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
