"""Which triplets of a batch to learn from."""

import torch


def hardest_triplets(distances, labels):
    """For each anchor the farthest of its own class and the nearest of another."""
    anchors, positives, negatives = [], [], []
    for a in range(len(labels)):
        positive, negative = None, None
        for b in range(len(labels)):
            if a == b:
                continue
            if labels[a] == labels[b]:
                if positive is None or distances[a][b] > distances[a][positive]:
                    positive = b
            elif negative is None or distances[a][b] < distances[a][negative]:
                negative = b
        if positive is not None and negative is not None:
            anchors.append(a)
            positives.append(positive)
            negatives.append(negative)
    return torch.tensor(anchors), torch.tensor(positives), torch.tensor(negatives)


def hardest_triplets_fast(distances, labels):
    same = labels[:, None] == labels[None]
    itself = torch.eye(len(labels), dtype=torch.bool)
    positives = distances.masked_fill(~same | itself, -1.0).argmax(1)
    negatives = distances.masked_fill(same, float("inf")).argmin(1)
    keep = (same & ~itself).any(1) & (~same).any(1)
    return keep.nonzero()[:, 0], positives[keep], negatives[keep]
