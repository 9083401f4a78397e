import torch
from torch import nn


class Codebook(nn.Module):
    """Nearest codes, passed straight through; they follow the vectors they stand for."""

    def __init__(self, codes, width, decay=0.98):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(codes, width))

    def nearest(self, z):
        return torch.cdist(z, self.codes).argmin(1)

    def forward(self, z):
        flat = z.reshape(-1, z.shape[-1])
        index = self.nearest(flat.detach())
        chosen = self.codes[index].view_as(z)
        if self.training:
            self.follow(flat.detach(), index)
        commitment = (z - chosen).square().mean()
        return z + (chosen - z).detach(), commitment

    @torch.no_grad()
    def follow(self, flat, index):
        count = torch.bincount(index, minlength=len(self.codes))
        total = torch.zeros_like(self.codes).index_add_(0, index, flat)
        used = count > 0
        mean = total[used] / count[used, None]
        self.codes[used] = self.decay * self.codes[used] + (1 - self.decay) * mean

    @torch.no_grad()
    def rebuild(self, vectors, rounds):
        """Lloyd's algorithm, so that no code is left unused."""
        self.codes.copy_(vectors[torch.randperm(len(vectors))[: len(self.codes)]])
        for _ in range(rounds):
            index = self.nearest(vectors)
            count = torch.bincount(index, minlength=len(self.codes)).clamp(min=1)
            total = torch.zeros_like(self.codes).index_add_(0, index, vectors)
            self.codes.copy_(total / count[:, None])
