"""Tell earthquakes from noise in three-component seismograms."""

import argparse
import time

import torch
from data import Seismograms
from torch import nn
from torch.utils.data import DataLoader


class Picker(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(2 * width, 2)

    def forward(self, x):
        return self.head(self.body(x))


class Trainer:
    def __init__(self, args):
        self.args = args
        self.model = Picker(args.width)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.lr)
        self.criterion = nn.CrossEntropyLoss()
        self.loader = DataLoader(
            Seismograms(args.events),
            batch_size=args.batch_size,
            shuffle=True,
            drop_last=True,
            num_workers=args.workers,
            persistent_workers=args.workers > 0,
        )
        self.step = 0

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for pictures, labels in self.loader:
            loss = self.criterion(self.model(pictures), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
            self.step += 1
        return total / len(self.loader)

    def fit(self):
        start = time.perf_counter()
        for epoch in range(self.args.epochs):
            print(f"epoch {epoch}: loss {self.train_epoch():.4f}")
        print(f"trained {self.step} steps in {time.perf_counter() - start:.3f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--events", type=int, default=800)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--width", type=int, default=6)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    Trainer(args).fit()


if __name__ == "__main__":
    main()
