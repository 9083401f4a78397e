from dataclasses import dataclass

import torch

KINDS, BONDS = 9, 4


@dataclass
class Graph:
    atoms: torch.Tensor
    edges: torch.Tensor
    bonds: torch.Tensor
    target: float


@dataclass
class Batch:
    atoms: torch.Tensor
    source: torch.Tensor
    target: torch.Tensor
    bonds: torch.Tensor
    owner: torch.Tensor
    value: torch.Tensor


def make_graphs(count, seed):
    g = torch.Generator().manual_seed(seed)
    weight = torch.linspace(-1, 1, KINDS)
    graphs = []
    for _ in range(count):
        n = int(torch.randint(14, 22, (), generator=g))
        atoms = torch.randint(0, KINDS, (n,), generator=g)
        parent = (torch.rand(n - 1, generator=g) * torch.arange(1, n)).long()
        one = torch.stack([torch.arange(1, n), parent])
        bonds = torch.randint(0, BONDS, (n - 1,), generator=g)
        both = torch.cat([one, one.flip(0)], 1)
        pull = (weight[atoms[one[0]]] * weight[atoms[one[1]]]).sum() + weight[atoms].sum()
        graphs.append(Graph(atoms, both, torch.cat([bonds, bonds]), float(pull) / 4))
    return graphs


def collate(graphs):
    sizes = torch.tensor([len(graph.atoms) for graph in graphs])
    offsets = torch.cumsum(sizes, 0) - sizes
    edges = torch.cat([graph.edges + int(o) for graph, o in zip(graphs, offsets)], 1)
    return Batch(
        atoms=torch.cat([graph.atoms for graph in graphs]),
        source=edges[0],
        target=edges[1],
        bonds=torch.cat([graph.bonds for graph in graphs]),
        owner=torch.repeat_interleave(torch.arange(len(graphs)), sizes),
        value=torch.tensor([graph.target for graph in graphs]),
    )
