import lightning as L
import torch
from torch import nn


class DefectNet(L.LightningModule):
    """Finds scratches on sheet metal: a patch goes in, a class comes out."""

    def __init__(self, width=28, classes=5):
        super().__init__()
        layers, channels = [], 1
        for i in range(5):
            layers += [
                nn.Conv2d(channels, width * (1 + i // 2), 3, stride=1 + (i % 2 == 0), padding=1),
                nn.ReLU(),
            ]
            channels = width * (1 + i // 2)
        self.body = nn.Sequential(*layers)
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(channels * 25, 128), nn.ReLU(), nn.Linear(128, classes)
        )

    def training_step(self, batch, batch_idx):
        patches, labels = batch
        return nn.functional.cross_entropy(self.head(self.body(patches)), labels)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)
