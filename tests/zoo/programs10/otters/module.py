import lightning as L
import torch
from torch import nn

SPOTS = 500


class OtterModule(L.LightningModule):
    """Tells single otters apart."""

    def __init__(self, features=128, width=512):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, SPOTS),
        )

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self.body(x)
        loss = nn.functional.cross_entropy(logits, y)
        self.note(logits, y)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


class ListModule(OtterModule):
    def on_train_epoch_start(self):
        self.outputs = []
        self.targets = []

    def note(self, logits, y):
        self.outputs.append(logits)
        self.targets.append(y)
        with torch.no_grad():
            found = torch.cat(self.outputs).argmax(dim=1)
            self.accuracy = (found == torch.cat(self.targets)).float().mean()

    def on_train_epoch_end(self):
        print(f"accuracy {self.accuracy.item():.3f}")
        self.outputs.clear()
        self.targets.clear()


class SumModule(OtterModule):
    def on_train_epoch_start(self):
        self.right = torch.zeros(())
        self.seen = 0

    @torch.no_grad()
    def note(self, logits, y):
        self.right += (logits.argmax(dim=1) == y).sum()
        self.seen += len(y)
        self.accuracy = self.right / self.seen

    def on_train_epoch_end(self):
        print(f"accuracy {self.accuracy.item():.3f}")
