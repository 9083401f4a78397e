"""The sewer network of a town as a graph, and levels measured at its shafts."""

import numpy as np
import torch


def make_graph(shafts, seed):
    rng = np.random.default_rng(seed)
    place = rng.random((shafts, 2))
    distance = np.linalg.norm(place[:, None] - place[None], axis=-1)
    near = np.argsort(distance, 1)[:, 1:6]
    edges = {(min(i, j), max(i, j)) for i, row in enumerate(near.tolist()) for j in row}
    edges = torch.tensor(sorted(edges)).T
    length = torch.tensor(distance[edges[0], edges[1]], dtype=torch.float32)
    return edges, length


def make_levels(edges, shafts, hours, seed):
    g = torch.Generator().manual_seed(seed)
    level = torch.zeros(hours, shafts)
    state = torch.zeros(shafts)
    degree = torch.bincount(edges.flatten(), minlength=shafts).clamp(min=1)
    for t in range(hours):
        flow = torch.zeros(shafts)
        flow.index_add_(0, edges[0], state[edges[1]])
        flow.index_add_(0, edges[1], state[edges[0]])
        rain = torch.rand(shafts, generator=g) * (t % 24 < 6)
        state = 0.5 * state + 0.4 * flow / degree + rain
        level[t] = state
    return (level - level.mean()) / level.std()
