"""Three small image classifiers."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import torch
from torch import nn


class Classifier(pl.LightningModule):
    """What the three have in common: features, a linear head, loss and optimizer."""

    def __init__(self, features: nn.Module, width: int, classes: int, learning_rate: float) -> None:
        """Take the layers that turn images into ``width`` maps of features."""
        super().__init__()
        self.features = features
        self.head = nn.Linear(width, classes)
        self.learning_rate = learning_rate

    def forward(self, images: torch.Tensor) -> Any:
        """Return a score for each class."""
        return self.head(self.features(images).mean((2, 3)))

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        """Return the loss of a batch."""
        del index
        images, labels = batch
        loss = nn.functional.cross_entropy(self(images), labels)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: list[torch.Tensor], index: int) -> None:
        """Count what was right."""
        del index
        images, labels = batch
        self.log("val_accuracy", (self(images).argmax(1) == labels).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return Adam."""
        return torch.optim.Adam(self.parameters(), lr=self.learning_rate)


def convolution(inside: int, outside: int, size: int = 3, **options: Any) -> nn.Sequential:
    """Return a convolution that keeps the size of its maps, with what usually follows it."""
    return nn.Sequential(
        nn.Conv2d(inside, outside, size, padding=size // 2, bias=False, **options),
        nn.BatchNorm2d(outside),
        nn.ReLU(),
    )


class Residual(nn.Module):
    """Two convolutions beside a path that leaves its input as it is."""

    def __init__(self, width: int) -> None:
        """Take the number of maps."""
        super().__init__()
        self.layers = nn.Sequential(convolution(width, width), convolution(width, width))

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Add what was found to what was there."""
        return maps + self.layers(maps)


class Inverted(nn.Module):
    """Wide inside and map by map, with a weight for each map: a block of an EfficientNet."""

    def __init__(self, width: int, expansion: int) -> None:
        """Take the number of maps, and how many times as many there are inside."""
        super().__init__()
        wide = width * expansion
        self.expand = convolution(width, wide, 1)
        self.depthwise = convolution(wide, wide, 3, groups=wide)
        self.excite = nn.Sequential(nn.Conv2d(wide, wide, 1), nn.Sigmoid())
        self.project = nn.Conv2d(wide, width, 1)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Add what was found to what was there."""
        wide = self.depthwise(self.expand(maps))
        return maps + self.project(wide * self.excite(wide.mean((2, 3), keepdim=True)))


class BaselineCNN(Classifier):
    """Two convolutions."""

    def __init__(self, width: int = 16, classes: int = 10, learning_rate: float = 1e-3) -> None:
        """Take the number of maps of the first."""
        features = nn.Sequential(
            convolution(3, width), nn.MaxPool2d(2), convolution(width, 2 * width)
        )
        super().__init__(features, 2 * width, classes, learning_rate)


class ResNet(Classifier):
    """Residual blocks."""

    def __init__(
        self, width: int = 8, blocks: int = 2, classes: int = 10, learning_rate: float = 1e-3
    ) -> None:
        """Take the number of maps and of blocks."""
        features = nn.Sequential(
            convolution(3, width), nn.MaxPool2d(2), *(Residual(width) for _ in range(blocks))
        )
        super().__init__(features, width, classes, learning_rate)


class EfficientNet(Classifier):
    """Inverted residual blocks."""

    def __init__(
        self,
        width: int = 8,
        blocks: int = 2,
        expansion: int = 2,
        classes: int = 10,
        learning_rate: float = 1e-3,
    ) -> None:
        """Take the number of maps, of blocks, and how much wider they are inside."""
        features = nn.Sequential(
            convolution(3, width),
            nn.MaxPool2d(2),
            *(Inverted(width, expansion) for _ in range(blocks)),
        )
        super().__init__(features, width, classes, learning_rate)


MODELS: dict[str, type[Classifier]] = {
    kind.__name__: kind for kind in (BaselineCNN, ResNet, EfficientNet)
}
