import torch
from clips import SPECIES
from torch import nn
from torch.nn import functional as F

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl


def stage(inputs, outputs, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.GELU(),
        nn.MaxPool2d(2),
    )


class BirdClassifier(pl.LightningModule):
    def __init__(self, batch_transform=None, lr=1e-3):
        super().__init__()
        self.batch_transform = batch_transform
        self.lr = lr
        self.net = nn.Sequential(
            stage(1, 16, stride=2),
            stage(16, 32),
            stage(32, 48),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(48, SPECIES),
        )

    def on_after_batch_transfer(self, batch, dataloader_idx):
        inputs, species = batch
        if self.batch_transform is not None:
            inputs = torch.stack([self.batch_transform(wave) for wave in inputs])
        return inputs.unsqueeze(1), species

    def training_step(self, batch, batch_idx):
        inputs, species = batch
        return F.cross_entropy(self.net(inputs), species)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr)
