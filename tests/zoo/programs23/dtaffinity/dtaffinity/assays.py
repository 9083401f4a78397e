"""Binding assays: a compound's fingerprint, a protein's residues and the measured pKd."""

from dataclasses import dataclass

import torch

FINGERPRINT = 512
RESIDUES = 25
LENGTH = 96


@dataclass
class Assays:
    fingerprints: torch.Tensor
    residues: torch.Tensor
    affinity: torch.Tensor

    def __len__(self):
        return len(self.affinity)

    def split(self, count):
        first = Assays(self.fingerprints[:-count], self.residues[:-count], self.affinity[:-count])
        last = Assays(self.fingerprints[-count:], self.residues[-count:], self.affinity[-count:])
        return first, last

    def batches(self, size, generator):
        for rows in torch.randperm(len(self), generator=generator).split(size):
            if len(rows) == size:
                yield self.fingerprints[rows], self.residues[rows], self.affinity[rows]


def make_assays(count, seed):
    g = torch.Generator().manual_seed(seed)
    fingerprints = (torch.rand(count, FINGERPRINT, generator=g) < 0.1).float()
    residues = torch.randint(0, RESIDUES, (count, LENGTH), generator=g)
    pocket = (residues < 6).float().mean(dim=1)
    scaffold = fingerprints[:, :64].sum(dim=1) / 8.0
    noise = 0.1 * torch.randn(count, generator=g)
    return Assays(fingerprints, residues, 6.0 + scaffold * pocket + noise)
