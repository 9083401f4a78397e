import torch


class Graph:
    def __init__(self, nodes, edges, features, generator):
        source = torch.randint(0, nodes, (edges,), generator=generator)
        target = torch.randint(0, nodes, (edges,), generator=generator)
        degree = torch.bincount(target, minlength=nodes).clamp(min=1)
        weight = 1.0 / degree[target].float()
        index = torch.stack((target, source))
        self.adjacency = torch.sparse_coo_tensor(index, weight, (nodes, nodes)).coalesce()
        self.x = torch.randn(nodes, features, generator=generator)
        self.y = (torch.sparse.mm(self.adjacency, self.x)[:, 0] > 0).long()


def make_graphs(count, nodes, edges, features, seed):
    g = torch.Generator().manual_seed(seed)
    return [Graph(nodes, edges, features, g) for _ in range(count)]
