"""Intent classification of short requests, in many short epochs."""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

WORDS = 60_000
LEXICON = Path("lexicon.jsonl")


def write_lexicon():
    rng = np.random.default_rng(2)
    with LEXICON.open("w") as out:
        for i, freq in enumerate(rng.integers(1, 10_000, WORDS).tolist()):
            out.write(json.dumps({"word": f"w{i}", "id": i % 8000, "count": freq}) + "\n")


def open_lexicon(worker_id):
    dataset = get_worker_info().dataset
    with LEXICON.open() as lines:
        entries = [json.loads(line) for line in lines]
    dataset.lexicon = {entry["word"]: entry["id"] for entry in entries}


class Requests(Dataset):
    def __init__(self, size, length=24):
        rng = np.random.default_rng(3)
        self.texts = [
            " ".join(f"w{w}" for w in row) for row in rng.integers(0, WORDS, (size, length))
        ]
        self.intents = rng.integers(0, 12, size)
        self.lexicon = None

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        ids = [self.lexicon[word] for word in self.texts[i].split()]
        return torch.tensor(ids), int(self.intents[i])


class Classifier(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.embed = nn.Embedding(8000, dim, sparse=True)
        layer = nn.TransformerEncoderLayer(dim, 4, 3 * dim, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 12)

    def forward(self, ids):
        return self.head(self.encoder(self.embed(ids)).mean(1))


def main(args):
    write_lexicon()
    loader = DataLoader(
        Requests(args.batch_size * 9),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=2,
        worker_init_fn=open_lexicon,
        persistent_workers=args.persistent,
    )
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        total = 0.0
        for ids, intents in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(ids), intents)
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        if epoch % 4 == 0:
            print(f"epoch {epoch:2d} loss {total / len(loader):.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--persistent", action="store_true")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    main(parser.parse_args())
