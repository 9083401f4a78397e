import torch


def random_graph(nodes, edges, seed=0):
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(0, nodes, (2, edges), generator=generator)
    adjacency = torch.zeros(nodes, nodes)
    adjacency[ends[0], ends[1]] = 1.0
    return torch.maximum(adjacency, adjacency.T)


def normalize(adjacency):
    """The symmetric normalisation of a graph convolution, two hops wide."""
    a = adjacency + torch.eye(len(adjacency))
    scale = a.sum(1).rsqrt()
    a = scale[:, None] * a * scale[None]
    return 0.5 * a + 0.5 * (a @ a)
