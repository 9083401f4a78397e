"""Triplets for matching photos of the same product."""

import torch
from torch import nn


class PairwiseMiner:
    """For every anchor and positive, the closest negative further away."""

    def __call__(self, distances, labels):
        d = distances.tolist()
        y = labels.tolist()
        anchors, positives, negatives = [], [], []
        for a in range(len(y)):
            for p in range(len(y)):
                if p == a or y[p] != y[a]:
                    continue
                best, best_distance = None, float("inf")
                for n in range(len(y)):
                    if y[n] != y[a] and d[a][p] < d[a][n] < best_distance:
                        best, best_distance = n, d[a][n]
                if best is not None:
                    anchors.append(a)
                    positives.append(p)
                    negatives.append(best)
        return torch.tensor(anchors), torch.tensor(positives), torch.tensor(negatives)


class MaskedMiner:
    """For every anchor and positive, the closest negative further away."""

    def __call__(self, distances, labels):
        same = labels[:, None] == labels[None, :]
        anchors, positives = (same & ~torch.eye(len(labels), dtype=torch.bool)).nonzero(
            as_tuple=True
        )
        rows = distances[anchors]
        allowed = ~same[anchors] & (rows > distances[anchors, positives][:, None])
        closest, negatives = rows.masked_fill(~allowed, float("inf")).min(dim=1)
        found = closest.isfinite()
        return anchors[found], positives[found], negatives[found]


MINERS = {"pairwise": PairwiseMiner, "masked": MaskedMiner}


class TripletLoss(nn.Module):
    def __init__(self, miner, margin=0.2):
        super().__init__()
        self.miner, self.margin = MINERS[miner](), margin

    def forward(self, embeddings, labels):
        distances = torch.cdist(embeddings, embeddings)
        a, p, n = self.miner(distances.detach(), labels)
        if len(a) == 0:
            return embeddings.sum() * 0.0
        return torch.relu(distances[a, p] - distances[a, n] + self.margin).mean()
