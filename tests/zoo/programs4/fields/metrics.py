import torch


class EpochIoU:
    """IoU over everything seen since the last reset."""

    def __init__(self, n_classes):
        self.n_classes = n_classes
        self.reset()

    def reset(self):
        self.logits = None
        self.targets = None

    def update(self, logits, target):
        if self.logits is None:
            self.logits, self.targets = logits, target
        else:
            self.logits = torch.cat([self.logits, logits])
            self.targets = torch.cat([self.targets, target])

    def compute(self):
        guess = self.logits.argmax(1)
        pairs = torch.bincount(
            (self.targets * self.n_classes + guess).flatten(), minlength=self.n_classes**2
        )
        return iou(pairs.view(self.n_classes, self.n_classes))


class CountingIoU(EpochIoU):
    def reset(self):
        self.pairs = torch.zeros(self.n_classes**2, dtype=torch.long)

    def update(self, logits, target):
        key = target * self.n_classes + logits.argmax(1)
        self.pairs += torch.bincount(key.flatten(), minlength=self.n_classes**2)

    def compute(self):
        return iou(self.pairs.view(self.n_classes, self.n_classes))


def iou(confusion):
    both = confusion.diag().float()
    return (both / (confusion.sum(0) + confusion.sum(1) - both).clamp_min(1)).mean().item()
