"""Predict the mineral of a core sample from a sequence of sensor readings of varying length."""

import argparse
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    samples: int = 1280
    channels: int = 24
    classes: int = 6
    batch_size: int = 32
    epochs: int = 3
    lr: float = 1e-3
    seed: int = 11


class Cores(Dataset):
    def __init__(self, cfg):
        rng = np.random.default_rng(cfg.seed)
        lengths = rng.integers(90, 121, cfg.samples)
        self.labels = rng.integers(0, cfg.classes, cfg.samples)
        centers = rng.normal(0, 0.5, (cfg.classes, cfg.channels))
        self.readings = [
            (rng.normal(0, 1, (n, cfg.channels)) + centers[label]).astype(np.float32)
            for n, label in zip(lengths, self.labels)
        ]

    def __len__(self):
        return len(self.readings)

    def __getitem__(self, index):
        return self.readings[index], int(self.labels[index])


def collate_lists(items):
    longest = max(len(readings) for readings, _ in items)
    padded, mask = [], []
    for readings, _ in items:
        rows = [[float(value) for value in row] for row in readings]
        flags = [1.0] * len(rows)
        while len(rows) < longest:
            rows.append([0.0] * len(rows[0]))
            flags.append(0.0)
        padded.append(rows)
        mask.append(flags)
    labels = [label for _, label in items]
    return torch.tensor(padded), torch.tensor(mask), torch.tensor(labels)


def collate_arrays(items):
    longest = max(len(readings) for readings, _ in items)
    padded = torch.zeros(len(items), longest, items[0][0].shape[1])
    mask = torch.zeros(len(items), longest)
    for i, (readings, _) in enumerate(items):
        padded[i, : len(readings)] = torch.from_numpy(readings)
        mask[i, : len(readings)] = 1.0
    return padded, mask, torch.tensor([label for _, label in items])


class Encoder(nn.Module):
    def __init__(self, cfg, width=88):
        super().__init__()
        self.conv1 = nn.Conv1d(cfg.channels, width, 5, padding=2)
        self.conv2 = nn.Conv1d(width, width, 5, padding=2)
        self.conv3 = nn.Conv1d(width, width, 5, padding=2)
        self.head = nn.Linear(width, cfg.classes)

    def forward(self, x, mask):
        h = torch.relu(self.conv1(x.transpose(1, 2)))
        h = torch.relu(self.conv2(h))
        h = torch.relu(self.conv3(h)) * mask.unsqueeze(1)
        return self.head(h.sum(-1) / mask.sum(-1, keepdim=True))


def fit(cfg, collate_fn):
    loader = DataLoader(Cores(cfg), cfg.batch_size, shuffle=True, collate_fn=collate_fn)
    model = Encoder(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    steps = 0
    start = time.perf_counter()
    for epoch in range(cfg.epochs):
        for x, mask, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(x, mask), labels)
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch}: loss {loss.item():.4f}")
    return steps, time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--collate", choices=["lists", "arrays"], default="lists")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(11)
    config = Config()
    count, seconds = fit(config, collate_lists if args.collate == "lists" else collate_arrays)
    print(f"trained {count} steps in {seconds:.3f} s")
