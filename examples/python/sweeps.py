"""Measure a loader, a function, a training step and batch sizes, before training begins.

    python examples/python/sweeps.py

Reading a sample takes a few milliseconds, most of it waiting, as with files that lie elsewhere.
Nothing that is measured is changed by it: the last line shows that the model is what it was.
"""

from __future__ import annotations

import time

import stepwatch
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES, SIZE = 10, 32


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    """Noise with a bright square, whose place says the class."""

    def __len__(self) -> int:
        return 2000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(0.002)  # Where the file is.
        label = index % CLASSES
        picture = torch.randn(3, SIZE, SIZE, generator=torch.Generator().manual_seed(index))
        picture[:, 3 * label : 3 * label + 4, :4] += 2
        return flip(picture, index), label


def flip(picture: torch.Tensor, index: int) -> torch.Tensor:
    """Turn every other picture round."""
    return picture.flip(-1) if index % 2 else picture


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Pictures(), batch_size=16, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(4),
        nn.Flatten(),
        nn.Linear(8 * (SIZE // 4) ** 2, CLASSES),
    )
    weights = [tensor.clone() for tensor in model.state_dict().values()]

    # Which number of workers? The loader that is given stays as it is.
    print(stepwatch.benchmark_dataloader(loader, workers=[0, 1, 2, 4]), end="\n\n")

    # How long does one transform take?
    print(stepwatch.benchmark_callable(flip, torch.ones(3, SIZE, SIZE), 1), end="\n\n")

    # Forward, backward, update?
    print(stepwatch.benchmark_training(model, loader), end="\n\n")

    # Which batch size?
    print(stepwatch.find_batch_size(model, loader, max_batch_size=256), end="\n\n")

    same = all(map(torch.equal, weights, model.state_dict().values()))
    print("The model is", "as it was." if same else "another.")


if __name__ == "__main__":
    main()
