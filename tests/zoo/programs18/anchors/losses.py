import torch
import torch.nn.functional as F


def detection_loss(boxes, scores, targets, present):
    """Box regression where an object is present, and objectness everywhere."""
    total = torch.zeros(())
    for b in range(boxes.shape[0]):
        box_loss = F.smooth_l1_loss(boxes[b], targets[b], reduction="none").sum(dim=-1)
        box_loss = (box_loss * present[b]).sum() / present[b].sum().clamp(min=1)
        object_loss = F.binary_cross_entropy_with_logits(scores[b], present[b])
        total = total + box_loss + object_loss
    return total / boxes.shape[0]


def detection_loss_batched(boxes, scores, targets, present):
    box_loss = F.smooth_l1_loss(boxes, targets, reduction="none").sum(dim=-1)
    box_loss = (box_loss * present).sum(dim=1) / present.sum(dim=1).clamp(min=1)
    return box_loss.mean() + F.binary_cross_entropy_with_logits(scores, present)
