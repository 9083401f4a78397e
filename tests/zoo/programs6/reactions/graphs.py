from dataclasses import dataclass

import numpy as np
import torch


@dataclass
class Molecule:
    atoms: torch.Tensor
    bonds: np.ndarray
    energy: float


def random_molecules(count: int, seed: int = 2) -> list[Molecule]:
    rng = np.random.default_rng(seed)
    molecules = []
    for _ in range(count):
        size = int(rng.integers(30, 48))
        bonds = rng.integers(0, size, (size * 3, 2))
        atoms = torch.from_numpy(rng.standard_normal((size, 32)).astype(np.float32))
        molecules.append(Molecule(atoms, bonds, float(rng.standard_normal())))
    return molecules


def dense_batch(molecules: list[Molecule]):
    largest = max(len(m.atoms) for m in molecules)
    x = torch.zeros(len(molecules), largest, molecules[0].atoms.shape[1])
    adjacency = torch.zeros(len(molecules), largest, largest)
    for i, molecule in enumerate(molecules):
        x[i, : len(molecule.atoms)] = molecule.atoms
        for a, b in molecule.bonds:
            adjacency[i, a, b] = 1.0
            adjacency[i, b, a] = 1.0
    return x, adjacency, torch.tensor([m.energy for m in molecules])


def dense_batch_np(molecules: list[Molecule]):
    largest = max(len(m.atoms) for m in molecules)
    x = torch.zeros(len(molecules), largest, molecules[0].atoms.shape[1])
    adjacency = np.zeros((len(molecules), largest, largest), dtype=np.float32)
    for i, molecule in enumerate(molecules):
        x[i, : len(molecule.atoms)] = molecule.atoms
        a, b = molecule.bonds.T
        adjacency[i, a, b] = 1.0
        adjacency[i, b, a] = 1.0
    return x, torch.from_numpy(adjacency), torch.tensor([m.energy for m in molecules])
