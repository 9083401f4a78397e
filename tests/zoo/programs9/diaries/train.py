"""Mood of diary entries; most are short, a few go on and on."""

import argparse
import random
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


class Mood(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(2000, dim)
        self.layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.0, batch_first=True)
        self.out = nn.Linear(dim, 4)

    def forward(self, ids):
        return self.out(self.layer(self.embed(ids)).mean(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-length", type=int, default=None)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    entries = []
    for i in range(800):
        length = random.randint(900, 1100) if i % 133 == 50 else random.randint(30, 64)
        entries.append((torch.randint(1, 2000, (length,)), random.randrange(4)))

    def collate(batch):
        ids = pad_sequence([words[: args.max_length] for words, _ in batch], batch_first=True)
        return ids, torch.tensor([mood for _, mood in batch])

    loader = DataLoader(entries, batch_size=8, shuffle=True, collate_fn=collate)
    model = Mood()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = 0
    start = time.perf_counter()
    for ids, moods in loader:
        loss = nn.functional.cross_entropy(model(ids), moods)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
