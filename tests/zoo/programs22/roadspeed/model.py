import lightning as L
import torch
from roads import HISTORY, HORIZON
from torch import nn
from torch.nn import functional as F


def road_modes(adjacency, count):
    """The smoothest patterns on the network: eigenvectors of its normalised Laplacian."""
    degree = adjacency.sum(dim=1).clamp(min=1e-6)
    scale = degree.rsqrt()
    laplacian = torch.eye(len(adjacency)) - scale[:, None] * adjacency * scale[None, :]
    _, vectors = torch.linalg.eigh(laplacian)
    return vectors[:, :count]


class SpectralBlock(nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(modes, width))
        self.mix = nn.Linear(2 * width, width)

    def forward(self, x, basis):
        spectrum = torch.matmul(basis.T, x) * self.gain
        smooth = torch.matmul(basis, spectrum)
        return x + F.relu(self.mix(torch.cat([x, smooth], dim=-1)))


class SpeedForecaster(L.LightningModule):
    def __init__(self, adjacency, width=32, modes=48, blocks=2):
        super().__init__()
        self.modes = modes
        self.register_buffer("adjacency", adjacency)
        self.embed = nn.Linear(HISTORY, width)
        self.blocks = nn.ModuleList(SpectralBlock(width, modes) for _ in range(blocks))
        self.head = nn.Linear(width, HORIZON)

    def basis(self):
        return road_modes(self.adjacency, self.modes)

    def forward(self, past):
        basis = self.basis()
        x = self.embed(past)
        for block in self.blocks:
            x = block(x, basis)
        return self.head(x)

    def training_step(self, batch, batch_idx):
        past, future = batch
        return F.l1_loss(self(past), future)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3, fused=True)


class BufferedForecaster(SpeedForecaster):
    def __init__(self, adjacency, **options):
        super().__init__(adjacency, **options)
        self.register_buffer("vectors", road_modes(adjacency, self.modes))

    def basis(self):
        return self.vectors
