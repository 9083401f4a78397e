import torch
from torch import nn


class TourTime(nn.Module):
    """Every stop by itself, then the mean over the stops of a tour."""

    def __init__(self, features, width):
        super().__init__()
        self.stop = nn.Sequential(
            nn.Linear(features, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
        )
        self.tour = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, stops, owner, tours):
        h = self.stop(stops)
        total = torch.zeros(tours, h.shape[1]).index_add(0, owner, h)
        count = torch.bincount(owner, minlength=tours).unsqueeze(1)
        return self.tour(total / count).squeeze(1)
