import lightning as L
import torch
from torch import nn


class Forecaster(L.LightningModule):
    def __init__(self, width=48, horizon=14, learning_rate=2e-3):
        super().__init__()
        self.learning_rate = learning_rate
        self.inputs = nn.Linear(1, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.outputs = nn.Linear(width, horizon)

    def forward(self, history):
        return self.outputs(self.encoder(self.inputs(history))[:, -1])

    def training_step(self, batch, batch_idx):
        history, future = batch
        return nn.functional.l1_loss(self(history), future)

    def validation_step(self, batch, batch_idx):
        history, future = batch
        self.log("val_mae", nn.functional.l1_loss(self(history), future))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.learning_rate)
