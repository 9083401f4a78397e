import torch
from torch import nn

from .data import STAGES


class SleepTransformer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.patch = nn.Conv1d(2, cfg.width, kernel_size=20, stride=20)
        self.position = nn.Parameter(torch.randn(1, cfg.samples // 20, cfg.width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            cfg.width,
            cfg.heads,
            4 * cfg.width,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, cfg.layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(cfg.width)
        self.head = nn.Linear(cfg.width, len(STAGES))

    def forward(self, x):
        x = self.patch(x).transpose(1, 2) + self.position
        return self.head(self.norm(self.encoder(x)).mean(1))
