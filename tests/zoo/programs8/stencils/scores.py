"""Intersection over union."""


class Scores:
    def __init__(self, classes):
        self.classes = classes
        self.confusion = [[0] * classes for _ in range(classes)]

    def update(self, predicted, wanted):
        for p, w in zip(predicted.flatten().tolist(), wanted.flatten().tolist()):
            self.confusion[w][p] += 1

    def iou(self, c):
        hit = self.confusion[c][c]
        union = sum(self.confusion[c]) + sum(row[c] for row in self.confusion) - hit
        return hit / union if union else 0.0

    def summary(self):
        return "iou " + " ".join(f"{self.iou(c):.2f}" for c in range(self.classes))
