"""Spectral graph convolutions on one fixed mesh."""

import torch
from torch import nn


def grid_edges(side):
    index = torch.arange(side * side).view(side, side)
    right = torch.stack([index[:, :-1].flatten(), index[:, 1:].flatten()])
    down = torch.stack([index[:-1].flatten(), index[1:].flatten()])
    return torch.cat([right, down], 1)


def laplacian(edges, weights, n):
    a = torch.zeros(n, n)
    a[edges[0], edges[1]] = weights
    a = a + a.T
    scale = a.sum(1).clamp_min(1e-6).rsqrt()
    return torch.eye(n) - scale[:, None] * a * scale[None]


class Mesh:
    def __init__(self, side, keep=False):
        self.n = side * side
        self.edges = grid_edges(side)
        generator = torch.Generator().manual_seed(8)
        self.weights = 0.5 + torch.rand(self.edges.shape[1], generator=generator)
        self._modes = None
        self.keep = keep

    def modes(self, k):
        """The k smoothest modes."""
        if self._modes is not None:
            return self._modes
        frequency, modes = torch.linalg.eigh(laplacian(self.edges, self.weights, self.n))
        if self.keep:
            self._modes = frequency[:k], modes[:, :k]
        return frequency[:k], modes[:, :k]


class SpectralConv(nn.Module):
    def __init__(self, c_in, c_out, k):
        super().__init__()
        self.filters = nn.Parameter(torch.randn(k, c_in, c_out) / (c_in * k) ** 0.5)
        self.skip = nn.Linear(c_in, c_out)

    def forward(self, x, modes):
        spectrum = torch.einsum("nk,bnc->bkc", modes, x)
        y = torch.einsum("bkc,kcd->bkd", spectrum, self.filters)
        return self.skip(x) + torch.einsum("nk,bkd->bnd", modes, y)


class HeatNet(nn.Module):
    def __init__(self, mesh, k=48, width=32):
        super().__init__()
        self.mesh, self.k = mesh, k
        self.lift = nn.Linear(2, width)
        self.convs = nn.ModuleList(SpectralConv(width, width, k) for _ in range(3))
        self.project = nn.Linear(width, 1)

    def forward(self, x):
        frequency, modes = self.mesh.modes(self.k)
        h = self.lift(x)
        for conv in self.convs:
            h = nn.functional.gelu(conv(h, modes * torch.exp(-0.1 * frequency)))
        return self.project(h).squeeze(-1)
