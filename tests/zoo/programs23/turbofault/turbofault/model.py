import torch
from torch import nn


class FaultNet(nn.Module):
    def __init__(self, channels: int, faults: int, width: int = 64) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(channels, width, 7, padding=3)
        self.conv2 = nn.Conv1d(width, width, 5, padding=2, stride=2)
        self.conv3 = nn.Conv1d(width, 96, 5, padding=2)
        self.conv4 = nn.Conv1d(96, 96, 3, padding=1)
        self.head = nn.Linear(96, faults)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for conv in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = torch.relu(conv(x))
        return self.head(x.mean(dim=2))
