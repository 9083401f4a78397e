import torch
from torch import nn


class TwoTower(nn.Module):
    def __init__(self, users, tracks, width=64):
        super().__init__()
        self.user = nn.Embedding(users, width)
        self.track = nn.Embedding(tracks, width)
        self.tower = nn.Sequential(
            nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, width)
        )

    def forward(self, users, positive, negative):
        query = self.tower(self.user(users))
        good = (query * self.track(positive)).sum(-1, keepdim=True)
        bad = torch.einsum("bd,bnd->bn", query, self.track(negative))
        return -nn.functional.logsigmoid(good - bad).mean()
