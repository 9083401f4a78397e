import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from .text import IdBatch, TextBatch, Tokenizer, make_dockets


@dataclass
class Config:
    batching: str = "text"
    documents: int = 640
    subjects: int = 8
    length: int = 384
    batch_size: int = 32
    epochs: int = 8
    width: int = 32
    lr: float = 1e-3


class Classifier(nn.Module):
    def __init__(self, vocabulary, cfg):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, cfg.width)
        self.convs = nn.ModuleList(nn.Conv1d(cfg.width, cfg.width, k) for k in (3, 4, 5))
        self.out = nn.Linear(3 * cfg.width, cfg.subjects)

    def forward(self, ids):
        x = self.embed(ids).transpose(1, 2)
        return self.out(torch.cat([F.relu(conv(x)).amax(2) for conv in self.convs], dim=1))


def fit(cfg):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dockets = make_dockets(cfg.documents, cfg.subjects)
    tokenizer = Tokenizer([text for text, _ in dockets[:80]])
    if cfg.batching == "ids":
        dockets = [(tokenizer.encode(text, cfg.length), subject) for text, subject in dockets]
        collate = IdBatch(cfg.length)
    else:
        collate = TextBatch(tokenizer, cfg.length)
    loader = DataLoader(dockets, cfg.batch_size, shuffle=True, collate_fn=collate)
    model = Classifier(len(tokenizer), cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    start, done = time.perf_counter(), 0
    for epoch in range(cfg.epochs):
        for ids, subject in loader:
            loss = F.cross_entropy(model(ids), subject)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
        print(f"epoch {epoch}: loss {loss.item():.3f}")
    print(f"trained {done} steps in {time.perf_counter() - start:.3f} s")
