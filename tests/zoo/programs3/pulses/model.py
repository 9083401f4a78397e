import torch
from torch import nn


class Attend(nn.Module):
    """Every sample of the signal looks at every other."""

    def __init__(self, width, heads=4):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x):
        h = self.norm(x.transpose(1, 2))
        h, _ = self.attention(h, h, h)
        return x + h.transpose(1, 2)


class PulseNet(nn.Module):
    def __init__(self, width=32, pool_first=False):
        super().__init__()
        self.stem = nn.Conv1d(2, width, 7, padding=3)
        self.down = nn.Conv1d(width, width, 4, stride=4)
        self.context = Attend(width)
        self.early = nn.Sequential(
            nn.Conv1d(width, width, 5, padding=2),
            nn.GELU(),
            nn.Conv1d(width, width, 5, padding=2),
            nn.GELU(),
        )
        self.late = nn.Sequential(
            nn.Conv1d(width, 6 * width, 5, padding=2),
            nn.GELU(),
            nn.Conv1d(6 * width, 6 * width, 5, padding=2),
            nn.GELU(),
            nn.Conv1d(6 * width, width, 5, padding=2),
        )
        self.head = nn.Linear(width, 6)
        self.pool_first = pool_first

    def forward(self, signal):
        h = self.early(torch.relu(self.stem(signal)))
        if self.pool_first:
            h = self.context(self.down(h))
        else:
            h = self.down(self.context(h))
        return self.head(self.late(h).mean(2))
