"""Made-up molecules: a ring with side chains, atom features, and a target."""

from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import Dataset


@dataclass
class Molecule:
    atoms: torch.Tensor  # (n, features)
    bonds: list  # (source, target, order)
    target: float


class MoleculeDataset(Dataset):
    def __init__(self, count, features, seed):
        rng = np.random.default_rng(seed)
        self.molecules = []
        for _ in range(count):
            n = int(rng.integers(16, 26))
            bonds = [(i, (i + 1) % n, 1) for i in range(n)]
            bonds += [(int(a), int(b), 2) for a, b in rng.integers(0, n, size=(n // 2, 2))]
            bonds += [(b, a, order) for a, b, order in bonds]
            atoms = torch.from_numpy(rng.standard_normal((n, features), dtype=np.float32))
            self.molecules.append(Molecule(atoms, bonds, float(atoms[:, 0].mean())))

    def __len__(self):
        return len(self.molecules)

    def __getitem__(self, index):
        return self.molecules[index]


def merge_molecules(molecules):
    n = sum(len(m.atoms) for m in molecules)
    e = sum(len(m.bonds) for m in molecules)
    atoms = torch.zeros(n, molecules[0].atoms.shape[1])
    graph = torch.zeros(n, dtype=torch.long)
    edges = torch.zeros(2, e, dtype=torch.long)
    orders = torch.zeros(e)
    offset = edge = 0
    for number, molecule in enumerate(molecules):
        for i, atom in enumerate(molecule.atoms):
            atoms[offset + i] = atom
            graph[offset + i] = number
        for source, target, order in molecule.bonds:
            edges[0, edge] = offset + source
            edges[1, edge] = offset + target
            orders[edge] = order
            edge += 1
        offset += len(molecule.atoms)
    return atoms, edges, orders, graph, torch.tensor([m.target for m in molecules])


def pack_molecules(molecules):
    sizes = torch.tensor([len(m.atoms) for m in molecules])
    counts = torch.tensor([len(m.bonds) for m in molecules])
    offsets = torch.cumsum(sizes, 0) - sizes
    bonds = torch.from_numpy(np.array([bond for m in molecules for bond in m.bonds]))
    edges = bonds[:, :2].t() + offsets.repeat_interleave(counts)
    graph = torch.arange(len(molecules)).repeat_interleave(sizes)
    atoms = torch.cat([m.atoms for m in molecules])
    return (
        atoms,
        edges.contiguous(),
        bonds[:, 2].float(),
        graph,
        torch.tensor([m.target for m in molecules]),
    )


BATCHERS = {"merge": merge_molecules, "pack": pack_molecules}
