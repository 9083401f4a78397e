import numpy as np

NEIGHBOURS = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]


def components(mask):
    """Sizes of the connected regions of a mask."""
    seen = np.zeros(mask.shape, dtype=bool)
    height, width = mask.shape
    sizes = []
    for r, c in zip(*np.nonzero(mask)):
        if seen[r, c]:
            continue
        stack, size = [(int(r), int(c))], 0
        seen[r, c] = True
        while stack:
            y, x = stack.pop()
            size += 1
            for v, u in ((y + dy, x + dx) for dy, dx in NEIGHBOURS):
                if 0 <= v < height and 0 <= u < width and mask[v, u] and not seen[v, u]:
                    seen[v, u] = True
                    stack.append((v, u))
        sizes.append(size)
    return sizes


def lesion_count(prediction, threshold=0.25, smallest=6):
    counts = [sum(s >= smallest for s in components(p > threshold)) for p in prediction]
    return float(np.mean(counts))
