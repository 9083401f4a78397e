import torch

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl
from plants import AHEAD, PAST
from torch import nn


class Mixer(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.over_time = nn.Sequential(
            nn.LayerNorm(length), nn.Linear(length, length), nn.GELU(), nn.Linear(length, length)
        )
        self.over_channels = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        x = x + self.over_time(x.transpose(1, 2)).transpose(1, 2)
        return x + self.over_channels(x)


class Forecaster(pl.LightningModule):
    def __init__(self, width=32, depth=3, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.lift = nn.Linear(1, width)
        self.mixers = nn.Sequential(*(Mixer(PAST, width) for _ in range(depth)))
        self.out = nn.Linear(PAST, AHEAD)
        self.lower = nn.Linear(width, 1)

    def forward(self, past):
        x = self.mixers(self.lift(past.unsqueeze(-1)))
        return self.lower(self.out(x.transpose(1, 2)).transpose(1, 2)).squeeze(-1)

    def training_step(self, batch, _):
        past, future = batch
        return nn.functional.huber_loss(self(past), future)

    def validation_step(self, batch, _):
        past, future = batch
        error = (self(past) - future).abs().mean()
        self.log("val_mae", error, batch_size=len(past))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, fused=True)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.7)
        return [optimizer], [scheduler]
