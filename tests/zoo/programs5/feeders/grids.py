"""Electric grids of towns as graphs; some towns are large."""

import torch


def make_grids(n, seed=0):
    g = torch.Generator().manual_seed(seed)
    grids = []
    for k in range(n):
        nodes = 1500 if k < n // 2 else 200
        edges = torch.randint(nodes, (2, 4 * nodes), generator=g)
        load = torch.randn(nodes, 24, generator=g)
        drop = torch.zeros(nodes).index_add_(0, edges[1], load[edges[0], 0])
        grids.append((load, edges, drop))
    return grids


def share(grids, rank, world, how):
    """The part of a process: a run of the list, or every world-th of it."""
    if how == "blocks":
        each = len(grids) // world
        return grids[rank * each : (rank + 1) * each]
    return grids[rank::world]
