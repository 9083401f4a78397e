import lightning as L
import torch
import torch.nn.functional as F
from torch import nn


class Stage(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.conv1 = nn.Conv1d(c_in, c_out, 5, stride=2, padding=2)
        self.norm1 = nn.GroupNorm(4, c_out)
        self.conv2 = nn.Conv1d(c_out, c_out, 5, padding=2)
        self.norm2 = nn.GroupNorm(4, c_out)

    def forward(self, x):
        x = F.silu(self.norm1(self.conv1(x)))
        return x + F.silu(self.norm2(self.conv2(x)))


class HealthModel(L.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.lr = lr
        self.stages = nn.Sequential(Stage(3, 48), Stage(48, 96), Stage(96, 160))
        self.head = nn.Sequential(nn.Linear(160, 64), nn.SiLU(), nn.Linear(64, 1))

    def forward(self, x):
        return torch.sigmoid(self.head(self.stages(x).mean(2))).squeeze(1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.l1_loss(self(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_mae", F.l1_loss(self(x), y))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr, fused=True)
