"""Guesses the century of a ballad from its words."""

import argparse
import random
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


def collate_lists(batch):
    longest = max(len(words) for words, _ in batch)
    rows, masks = [], []
    for words, _ in batch:
        row, mask = [], []
        for i in range(longest):
            if i < len(words):
                row.append(int(words[i]))
                mask.append(1.0)
            else:
                row.append(0)
                mask.append(0.0)
        rows.append(row)
        masks.append(mask)
    return torch.tensor(rows), torch.tensor(masks), torch.tensor([label for _, label in batch])


def collate_padded(batch):
    words = pad_sequence([words for words, _ in batch], batch_first=True)
    lengths = torch.tensor([len(words) for words, _ in batch])
    mask = (torch.arange(words.shape[1])[None] < lengths[:, None]).float()
    return words, mask, torch.tensor([label for _, label in batch])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(3000, 64)
        self.conv = nn.Conv1d(64, 96, 5, padding=2)
        self.out = nn.Linear(96, 7)

    def forward(self, words, mask):
        hidden = self.conv(self.embed(words).transpose(1, 2)).relu() * mask[:, None]
        return self.out(hidden.sum(2) / mask.sum(1, keepdim=True))


parser = argparse.ArgumentParser()
parser.add_argument("--collate", choices=["lists", "padded"], default="lists")
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)
random.seed(0)
ballads = [
    (torch.randint(1, 3000, (random.randint(100, 240),)), random.randrange(7)) for _ in range(1600)
]
loader = DataLoader(
    ballads, batch_size=32, shuffle=True,
    collate_fn=collate_lists if args.collate == "lists" else collate_padded,
)  # fmt: skip
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
steps = 0
start = time.perf_counter()
for _ in range(2):
    for words, mask, labels in loader:
        loss = nn.functional.cross_entropy(model(words, mask), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
