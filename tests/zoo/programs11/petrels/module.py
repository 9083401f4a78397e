import lightning as L
import torch
from torch import nn
from torch.nn import functional as F


class Colonies(L.LightningModule):
    """How many birds a stretch of coast holds, from what was measured there."""

    def __init__(self, features=384, width=512, lr=0.02):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(
            nn.Linear(features, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.poisson_nll_loss(self.net(x).squeeze(1), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)


class Coast(L.LightningDataModule):
    def __init__(self, rows=9216, features=384, batch_size=512):
        super().__init__()
        g = torch.Generator().manual_seed(0)
        self.batch_size = batch_size
        self.x = torch.randn(rows, features, generator=g)
        self.y = torch.poisson(torch.exp(0.5 * self.x[:, :3].tanh().sum(1)), generator=g)

    def train_dataloader(self):
        data = torch.utils.data.TensorDataset(self.x, self.y)
        sampler = torch.utils.data.BatchSampler(
            torch.utils.data.RandomSampler(data), self.batch_size, drop_last=True
        )
        return torch.utils.data.DataLoader(data, sampler=sampler, batch_size=None)
