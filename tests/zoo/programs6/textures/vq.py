import torch
from torch import nn


class Codebook(nn.Module):
    def __init__(self, codes, width, distance="broadcast"):
        super().__init__()
        self.embedding = nn.Embedding(codes, width)
        self.embedding.weight.data.uniform_(-1 / codes, 1 / codes)
        self.distance = {"broadcast": self.broadcast, "expanded": self.expanded}[distance]

    def broadcast(self, z):
        return ((z[:, None, :] - self.embedding.weight[None]) ** 2).sum(-1)

    def expanded(self, z):
        codes = self.embedding.weight
        return (z * z).sum(1, keepdim=True) - 2 * z @ codes.t() + (codes * codes).sum(1)

    def forward(self, z):
        b, c, h, w = z.shape
        flat = z.permute(0, 2, 3, 1).reshape(-1, c)
        with torch.no_grad():
            nearest = self.distance(flat).argmin(1)
        q = self.embedding(nearest).view(b, h, w, c).permute(0, 3, 1, 2)
        loss = (q - z.detach()).pow(2).mean() + 0.25 * (z - q.detach()).pow(2).mean()
        return z + (q - z).detach(), loss


class TextureVAE(nn.Module):
    def __init__(self, width=48, codes=128, distance="broadcast"):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, width, 4, 2, 1)
        )
        self.codebook = Codebook(codes, width, distance)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(width, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1)
        )

    def forward(self, x):
        z, commitment = self.codebook(self.encoder(x))
        return self.decoder(z), commitment
