"""Classifies mosaic stones by colour and shape."""

import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class Settings:
    stones: int = 1920
    batch: int = 32
    epochs: int = 3
    rate: float = 0.02


class StoneNet(nn.Module):
    def __init__(self, classes=12):
        super().__init__()
        self.first = nn.Conv2d(3, 24, 3, padding=1)
        self.second = nn.Conv2d(24, 48, 3, padding=1)
        self.third = nn.Conv2d(48, 64, 3, padding=1)
        self.classify = nn.Linear(64, classes)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = torch.max_pool2d(torch.relu(self.second(x)), 2)
        x = torch.max_pool2d(torch.relu(self.third(x)), 2)
        return self.classify(x.mean(dim=(2, 3)))


def train(settings: Settings) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    stones = torch.randn(settings.stones, 3, 32, 32)
    kinds = torch.randint(0, 12, (settings.stones,))
    loader = DataLoader(TensorDataset(stones, kinds), batch_size=settings.batch, shuffle=True)
    model = StoneNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=settings.rate, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    steps = 0
    start = time.perf_counter()
    for epoch in range(settings.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch}: loss {loss.item():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    train(Settings())
