import torch
from torch import nn
from torch.nn import functional as F


class Denoiser(nn.Module):
    def __init__(self, ch=32):
        super().__init__()
        self.time = nn.Linear(16, ch)
        self.inp = nn.Conv2d(3, ch, 3, padding=1)
        self.mid1 = nn.Conv2d(ch, ch, 3, padding=1)
        self.mid2 = nn.Conv2d(ch, ch, 3, padding=1)
        self.out = nn.Conv2d(ch, 3, 3, padding=1)
        self.register_buffer("freqs", torch.exp(torch.linspace(0.0, 4.0, 8)))

    def forward(self, x, t):
        angles = t[:, None] * self.freqs
        emb = self.time(torch.cat((angles.sin(), angles.cos()), dim=1))
        h = F.relu(self.inp(x) + emb[:, :, None, None])
        h = F.relu(self.mid1(h)) + h
        h = F.relu(self.mid2(h)) + h
        return self.out(h)
