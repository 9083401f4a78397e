"""Per-class scores while training."""

import torch


class Confusion:
    def __init__(self, classes):
        self.table = [[0] * classes for _ in range(classes)]

    def update(self, logits, labels):
        predictions = logits.argmax(dim=1)
        for n in range(len(labels)):
            self.table[int(labels[n])][int(predictions[n])] += 1

    def accuracy(self):
        right = sum(row[n] for n, row in enumerate(self.table))
        return right / max(1, sum(map(sum, self.table)))


class TensorConfusion:
    def __init__(self, classes):
        self.classes = classes
        self.table = torch.zeros(classes * classes, dtype=torch.long)

    def update(self, logits, labels):
        cells = labels * self.classes + logits.argmax(dim=1)
        self.table += torch.bincount(cells, minlength=len(self.table))

    def accuracy(self):
        table = self.table.view(self.classes, self.classes)
        return (table.trace() / table.sum()).item()
