import lightning as L
import torch
from torch import nn


class WearClassifier(L.LightningModule):
    def __init__(self, width=20, learning_rate=1e-3):
        super().__init__()
        self.learning_rate = learning_rate
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=(2, 4), padding=2),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(2 * width, 4),
        )

    def training_step(self, batch, batch_idx):
        spectrograms, labels = batch
        return nn.functional.cross_entropy(self.net(spectrograms), labels)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.learning_rate)
