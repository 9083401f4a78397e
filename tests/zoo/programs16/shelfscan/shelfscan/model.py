import lightning as L
import torch
from torch import nn

from .config import ShelfConfig


def block(inputs, outputs, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class ShelfClassifier(L.LightningModule):
    def __init__(self, cfg: ShelfConfig):
        super().__init__()
        self.cfg = cfg
        self.features = nn.Sequential(
            block(3, 24, 2), block(24, 48, 2), block(48, 64, 1), block(64, 96, 2)
        )
        self.head = nn.Linear(96, cfg.classes)

    def forward(self, images):
        return self.head(self.features(images).mean(dim=(2, 3)))

    def training_step(self, batch, batch_idx):
        images, labels = batch
        return nn.functional.cross_entropy(self(images), labels)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.cfg.learning_rate, momentum=0.9)
