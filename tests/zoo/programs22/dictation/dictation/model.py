import lightning as L
import torch
from torch import nn
from torch.nn import functional as F

from dictation.data import BANDS, FRAMES, PHONES


class Recogniser(L.LightningModule):
    def __init__(self, width=192, layers=3, heads=4):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(BANDS, width, 5, stride=2, padding=2),
            nn.GELU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2),
            nn.GELU(),
        )
        self.position = nn.Parameter(torch.zeros(FRAMES // 4, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, dim_feedforward=3 * width, dropout=0.0, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, PHONES)

    def forward(self, frames):
        x = self.front(frames.transpose(1, 2)).transpose(1, 2)
        return self.head(self.encoder(x + self.position))

    def training_step(self, batch, batch_idx):
        frames, phones = batch
        return F.cross_entropy(self(frames).flatten(0, 1), phones.flatten())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, fused=True)
