import torch


def make_anchors(cells, sizes=(0.1, 0.15, 0.22, 0.32, 0.45)):
    center = (torch.arange(cells) + 0.5) / cells
    cy, cx = torch.meshgrid(center, center, indexing="ij")
    center = torch.stack([cx, cy], -1).view(-1, 1, 2)
    half = torch.tensor(sizes).view(1, -1, 1) / 2
    return torch.cat([center - half, center + half], -1).view(-1, 4)


def iou(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    inner = width * height
    area_a = (a[2] - a[0]) * (a[3] - a[1])
    area_b = (b[2] - b[0]) * (b[3] - b[1])
    return inner / (area_a + area_b - inner)


def assign(anchors, boxes, threshold=0.35):
    """For each picture and anchor, the index of the box it should find, or -1."""
    anchors = anchors.tolist()
    matches = []
    for picture in boxes.tolist():
        row = []
        for anchor in anchors:
            best, best_iou = -1, threshold
            for index, box in enumerate(picture):
                overlap = iou(anchor, box)
                if overlap > best_iou:
                    best, best_iou = index, overlap
            row.append(best)
        matches.append(row)
    return torch.tensor(matches)


def assign_batched(anchors, boxes, threshold=0.35):
    a, b = anchors[None, :, None], boxes[:, None]
    inner = (torch.min(a[..., 2:], b[..., 2:]) - torch.max(a[..., :2], b[..., :2])).clamp(min=0)
    inner = inner.prod(-1)
    area_a = (a[..., 2:] - a[..., :2]).prod(-1)
    area_b = (b[..., 2:] - b[..., :2]).prod(-1)
    best_iou, best = (inner / (area_a + area_b - inner)).max(-1)
    return best.masked_fill(best_iou <= threshold, -1)
