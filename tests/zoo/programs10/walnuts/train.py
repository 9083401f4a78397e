"""Grades walnuts by a picture."""

import argparse
import time

import torch
from data import GRADES, Walnuts
from torch import nn
from torch.utils.data import DataLoader


class WalnutNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 96, 3, padding=1),
            nn.ReLU(),
        )
        self.out = nn.Linear(96, GRADES)

    def forward(self, x):
        return self.out(self.features(x).mean(dim=(2, 3)))


def train(model, loader, optimizer, criterion):
    model.train()
    total = 0.0
    for pictures, grades in loader:
        optimizer.zero_grad()
        loss = criterion(model(pictures), grades)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = sum(
        (model(pictures).argmax(dim=1) == grades).sum().item() for pictures, grades in loader
    )
    return right / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=24)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(200)
    training = DataLoader(
        Walnuts(40 * args.batch_size, seed=200, train=True),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=1,
        persistent_workers=True,
    )
    held_out = DataLoader(
        Walnuts(2 * args.batch_size, seed=300, train=False), batch_size=args.batch_size
    )
    model = WalnutNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    started = time.perf_counter()
    for epoch in range(args.epochs):
        loss = train(model, training, optimizer, criterion)
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {evaluate(model, held_out):.3f}")
    elapsed = time.perf_counter() - started
    torch.save(model.state_dict(), "walnuts.pt")
    print(f"trained {args.epochs * len(training)} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
