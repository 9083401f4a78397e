import lightning as L
import torch
from torch import nn


class DialectClassifier(L.LightningModule):
    def __init__(self, vocabulary=2000, width=96, dialects=9, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.embed = nn.Embedding(vocabulary, width)
        self.mix = nn.Sequential(
            nn.Conv1d(width, width, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(width, width, 3, padding=1),
            nn.ReLU(),
        )
        self.out = nn.Linear(width, dialects)

    def forward(self, tokens):
        return self.out(self.mix(self.embed(tokens).transpose(1, 2)).amax(-1))

    def training_step(self, batch, _):
        tokens, dialect = batch
        loss = nn.functional.cross_entropy(self(tokens), dialect)
        self.log("loss", loss, on_step=False, on_epoch=True, batch_size=len(tokens))
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9)
