"""Picking well spread points of a scan (PointNet++ style)."""

import numpy as np


def farthest_points(points, n_picked, first=0):
    picked = [first]
    nearest = [float("inf")] * len(points)
    coords = points.tolist()
    while len(picked) < n_picked:
        cx, cy, cz = coords[picked[-1]]
        best, best_distance = 0, -1.0
        for i, (x, y, z) in enumerate(coords):
            d = (x - cx) ** 2 + (y - cy) ** 2 + (z - cz) ** 2
            if d < nearest[i]:
                nearest[i] = d
            if nearest[i] > best_distance:
                best, best_distance = i, nearest[i]
        picked.append(best)
    return np.array(picked)


def farthest_points_np(points, n_picked, first=0):
    picked = np.empty(n_picked, np.int64)
    picked[0] = first
    points = points.astype(np.float64)
    nearest = np.full(len(points), np.inf)
    for k in range(1, n_picked):
        d = ((points - points[picked[k - 1]]) ** 2).sum(1)
        np.minimum(nearest, d, out=nearest)
        picked[k] = nearest.argmax()
    return picked


SAMPLERS = {"fps": farthest_points, "fps-np": farthest_points_np}
