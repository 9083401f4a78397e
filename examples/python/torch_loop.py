"""Train a small convolutional network on made-up pictures: a torch loop as anybody writes it.

    stepwatch run examples/python/torch_loop.py --epochs 2

Nothing here knows of stepwatch. The report says how long a step waits for its batch, what each
layer takes, forward and backward, and what validation and checkpoints cost.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES, SIZE = 10, 32


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    """Noise with a bright square, whose place says the class."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        label = index % CLASSES
        picture = torch.randn(3, SIZE, SIZE, generator=torch.Generator().manual_seed(index))
        picture[:, 3 * label : 3 * label + 4, :4] += 2
        return picture, label


class SmallCNN(nn.Module):
    """Two blocks and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.block1 = self.block(3, 8)
        self.block2 = self.block(8, 16)
        self.head = nn.Linear(16 * (SIZE // 4) ** 2, CLASSES)

    @staticmethod
    def block(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
        )

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(self.block2(self.block1(x)).flatten(1))


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader[Any]) -> float:
    """Return the share of pictures that the model gets right."""
    model.eval()
    right = sum(int((model(x).argmax(1) == y).sum()) for x, y in loader)
    model.train()
    return right / len(loader.dataset)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    training = DataLoader(Pictures(800), options.batch, shuffle=True, num_workers=options.workers)
    validation = DataLoader(Pictures(160), options.batch)
    model = SmallCNN()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(options.epochs):
            for x, y in training:
                optimizer.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            print(f"epoch {epoch}: accuracy {accuracy(model, validation):.2f}")
            torch.save(model.state_dict(), Path(folder) / "model.pt")


if __name__ == "__main__":
    main()
