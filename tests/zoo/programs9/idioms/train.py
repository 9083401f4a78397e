"""Next word of an idiom, from the eight words before."""

import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

VOCAB = 3000


class WordVectors(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.vocab = vocab
        self.weight = nn.Parameter(torch.randn(vocab, dim) * 0.02)

    def forward(self, ids):
        return F.one_hot(ids, self.vocab).float() @ self.weight


class Idioms(nn.Module):
    def __init__(self, vectors, dim=64):
        super().__init__()
        self.vectors = vectors
        self.mix = nn.Sequential(nn.Linear(8 * dim, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU())
        self.out = nn.Linear(128, 400)

    def forward(self, ids):
        return self.out(self.mix(self.vectors(ids).flatten(1)))


parser = argparse.ArgumentParser()
parser.add_argument("--vectors", choices=["matrix", "table"], default="matrix")
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)
words = torch.randint(0, VOCAB, (128 * 60, 8))
targets = torch.randint(0, 400, (128 * 60,))
loader = DataLoader(TensorDataset(words, targets), batch_size=128, shuffle=True)
vectors = WordVectors(VOCAB, 64) if args.vectors == "matrix" else nn.Embedding(VOCAB, 64)
model = Idioms(vectors)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
steps = 0
start = time.perf_counter()
for _ in range(2):
    for ids, target in loader:
        loss = F.cross_entropy(model(ids), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
