"""What is reported of a classifier."""

from __future__ import annotations

import torch


class ClassAccuracy:
    """How many of each class are right, as numbers that can be printed at any time."""

    def __init__(self, classes: int) -> None:
        self.right = [0.0] * classes
        self.seen = [0.0] * classes

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        guess = logits.argmax(1)
        for k in range(len(self.seen)):
            mask = labels == k
            self.seen[k] += mask.sum().item()
            self.right[k] += (guess[mask] == k).sum().item()

    def value(self) -> float:
        shares = [r / s for r, s in zip(self.right, self.seen) if s]
        return sum(shares) / len(shares)


class DeviceClassAccuracy:
    """The same, counted where the logits are."""

    def __init__(self, classes: int, device: torch.device) -> None:
        self.right = torch.zeros(classes, device=device)
        self.seen = torch.zeros(classes, device=device)

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        hit = (logits.argmax(1) == labels).float()
        self.seen.index_add_(0, labels, torch.ones_like(hit))
        self.right.index_add_(0, labels, hit)

    def value(self) -> float:
        return float((self.right / self.seen.clamp(min=1)).mean())
