import lightning as L
import torch
from torch import nn


def double_conv(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.ReLU(),
    )


class BuildingNet(L.LightningModule):
    def __init__(self, width=8, learning_rate=1e-3):
        super().__init__()
        self.learning_rate = learning_rate
        self.down = double_conv(4, width)
        self.bottom = double_conv(width, 2 * width)
        self.up = double_conv(3 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, tiles):
        fine = self.down(tiles)
        coarse = self.bottom(nn.functional.max_pool2d(fine, 2))
        coarse = nn.functional.interpolate(coarse, scale_factor=2)
        return self.out(self.up(torch.cat([fine, coarse], dim=1))).squeeze(1)

    def training_step(self, batch, batch_idx):
        tiles, masks = batch
        loss = nn.functional.binary_cross_entropy_with_logits(self(tiles), masks)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        tiles, masks = batch
        self.log("val_loss", nn.functional.binary_cross_entropy_with_logits(self(tiles), masks))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.learning_rate)
