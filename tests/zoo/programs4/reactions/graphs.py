from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import Dataset

N_ATOMS, N_BONDS = 12, 6
MAX_NODES = 32


@dataclass
class Graph:
    atoms: np.ndarray  # (n,)
    edges: np.ndarray  # (e, 2)
    bonds: np.ndarray  # (e, N_BONDS)
    y: float


def random_graph(rng):
    n = int(rng.integers(16, MAX_NODES + 1))
    chain = np.stack([np.arange(n - 1), np.arange(1, n)], 1)
    extra = rng.integers(0, n, (3 * n // 2, 2))
    edges = np.concatenate([chain, extra[extra[:, 0] != extra[:, 1]]])
    edges = np.unique(np.sort(edges, 1), axis=0)
    edges = np.concatenate([edges, edges[:, ::-1]])
    bonds = rng.dirichlet(np.ones(N_BONDS), len(edges)).astype(np.float32)
    atoms = rng.integers(0, N_ATOMS, n)
    y = float(np.mean(atoms) * 0.3 + bonds[:, 0].mean() * 4 + len(edges) / n)
    return Graph(atoms, edges, bonds, y)


class Reactions(Dataset):
    def __init__(self, n, seed=0):
        rng = np.random.default_rng(seed)
        self.graphs = [random_graph(rng) for _ in range(n)]

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, i):
        return self.graphs[i]


class DenseBatch:
    """Pads every graph to MAX_NODES."""

    def __call__(self, graphs):
        b = len(graphs)
        atoms = torch.full((b, MAX_NODES), N_ATOMS)
        bonds = torch.zeros(b, MAX_NODES, MAX_NODES, N_BONDS)
        for k, graph in enumerate(graphs):
            for i, atom in enumerate(graph.atoms):
                atoms[k, i] = int(atom)
            for (i, j), bond in zip(graph.edges, graph.bonds):
                bonds[k, int(i), int(j)] = torch.tensor(bond)
        return atoms, bonds, torch.tensor([g.y for g in graphs])


class ScatterBatch:
    """The same, with one assignment for all graphs."""

    def __call__(self, graphs):
        b = len(graphs)
        sizes = [len(g.atoms) for g in graphs]
        counts = [len(g.edges) for g in graphs]
        atoms = np.full((b, MAX_NODES), N_ATOMS)
        atoms[np.arange(MAX_NODES) < np.array(sizes)[:, None]] = np.concatenate(
            [g.atoms for g in graphs]
        )
        bonds = np.zeros((b, MAX_NODES, MAX_NODES, N_BONDS), np.float32)
        edges = np.concatenate([g.edges for g in graphs])
        owner = np.repeat(np.arange(b), counts)
        bonds[owner, edges[:, 0], edges[:, 1]] = np.concatenate([g.bonds for g in graphs])
        return (
            torch.from_numpy(atoms),
            torch.from_numpy(bonds),
            torch.tensor([g.y for g in graphs]),
        )


BATCHERS = {"dense": DenseBatch, "scatter": ScatterBatch}
