import lightning.pytorch as pl
import torch
from torch import nn
from torch.nn import functional as F


class Spotter(pl.LightningModule):
    def __init__(self, classes=8, width=120):
        super().__init__()
        self.inputs = nn.Conv1d(40, width, 5, padding=2)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv1d(width, width, 9, padding=4), nn.BatchNorm1d(width), nn.ReLU())
            for _ in range(3)
        )
        self.head = nn.Linear(width, classes)

    def forward(self, pictures):
        x = self.inputs(pictures.transpose(1, 2))
        for block in self.blocks:
            x = x + block(x)
        return self.head(x.mean(2))

    def training_step(self, batch, batch_idx):
        pictures, words = batch
        loss = F.cross_entropy(self(pictures), words)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, fused=True)
