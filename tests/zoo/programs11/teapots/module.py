import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Views(L.LightningDataModule):
    def __init__(self, n=720, classes=12, batch_size=16):
        super().__init__()
        self.n, self.classes, self.batch_size = n, classes, batch_size

    def setup(self, stage):
        g = torch.Generator().manual_seed(0)
        angle = torch.randint(0, self.classes, (self.n,), generator=g)
        grid = torch.linspace(-3.0, 3.0, 48)
        turn = angle.float()[:, None, None] * torch.pi / self.classes
        image = torch.cos(grid[:, None] * turn.cos() + grid[None, :] * turn.sin())
        image = image + 0.2 * torch.randn(self.n, 48, 48, generator=g)
        self.views = TensorDataset(image[:, None], angle)

    def train_dataloader(self):
        return DataLoader(self.views, batch_size=self.batch_size, shuffle=True, drop_last=True)


class Pose(L.LightningModule):
    def __init__(self, classes=12, lr=0.02):
        super().__init__()
        self.lr = lr
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(64, 96, 3, stride=2, padding=1)
        self.head = nn.Linear(96, classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.relu(self.conv3(x))
        return self.head(x.mean(dim=(2, 3)))

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)
