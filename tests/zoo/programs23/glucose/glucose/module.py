import torch
from torch import nn

try:
    from lightning.pytorch import LightningModule
except ImportError:
    from pytorch_lightning import LightningModule

from .cgm import CHANNELS, HORIZON


class Causal(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.pad = nn.ConstantPad1d((2 * dilation, 0), 0.0)
        self.conv = nn.Conv1d(width, width, 3, dilation=dilation)
        self.mix = nn.Conv1d(width, width, 1)

    def forward(self, x):
        return x + self.mix(torch.relu(self.conv(self.pad(x))))


class GlucoseForecast(LightningModule):
    def __init__(self, width=80, lr=1e-3, quantiles=(0.1, 0.5, 0.9)):
        super().__init__()
        self.save_hyperparameters()
        self.inlet = nn.Conv1d(CHANNELS, width, 1)
        self.blocks = nn.Sequential(*(Causal(width, 2**i) for i in range(5)))
        self.outlet = nn.Linear(width, HORIZON * len(quantiles))
        self.register_buffer("levels", torch.tensor(quantiles))

    def forward(self, past):
        last = self.blocks(self.inlet(past))[:, :, -1]
        return self.outlet(last).view(len(past), HORIZON, -1)

    def pinball(self, batch):
        past, future = batch
        error = future.unsqueeze(-1) - self(past)
        return torch.maximum(self.levels * error, (self.levels - 1) * error).mean()

    def training_step(self, batch, batch_idx):
        return self.pinball(batch)

    def validation_step(self, batch, batch_idx):
        self.log("val_pinball", self.pinball(batch), batch_size=len(batch[0]))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr, fused=True)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=120)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }
