"""Contrastive objectives for pairs of molecules and pockets."""

import torch
import torch.nn.functional as F


def triplet(anchors, positives, margin=0.3):
    """Each anchor against its positive and the hardest negative of the batch."""
    losses = []
    for i in range(len(anchors)):
        anchor = anchors[i]
        near = 1 - torch.dot(anchor, positives[i])
        others = torch.cat([positives[:i], positives[i + 1 :]])
        far = (1 - others @ anchor).min()
        losses.append(F.relu(near - far + margin))
    return torch.stack(losses).mean()


def triplet_matrix(anchors, positives, margin=0.3):
    """The same for all anchors at once."""
    distance = 1 - anchors @ positives.T
    near = distance.diagonal()
    itself = torch.eye(len(anchors), dtype=torch.bool)
    far = distance.masked_fill(itself, float("inf")).min(1).values
    return F.relu(near - far + margin).mean()
