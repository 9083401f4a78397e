"""Segmentation scores."""

import torch


class Overlap:
    """Mean intersection over union across classes, running."""

    def __init__(self, classes):
        self.classes = classes
        self.both = [0] * classes
        self.either = [0] * classes

    def update(self, predicted, target):
        guesses, truths = predicted.flatten().tolist(), target.flatten().tolist()
        for c in range(self.classes):
            self.both[c] += sum(1 for g, t in zip(guesses, truths) if g == c and t == c)
            self.either[c] += sum(1 for g, t in zip(guesses, truths) if g == c or t == c)

    def value(self):
        return sum(b / max(e, 1) for b, e in zip(self.both, self.either)) / self.classes


class MatrixOverlap:
    def __init__(self, classes):
        self.classes = classes
        self.table = torch.zeros(classes, classes)

    def update(self, predicted, target):
        pairs = (target * self.classes + predicted).flatten()
        self.table += pairs.bincount(minlength=self.classes**2).view_as(self.table)

    def value(self):
        both = self.table.diag()
        either = self.table.sum(0) + self.table.sum(1) - both
        return float((both / either.clamp(min=1)).mean())
