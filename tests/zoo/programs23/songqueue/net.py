import torch
from torch import nn


class QueueModel(nn.Module):
    def __init__(self, tracks, dim=24, width=192, sparse=False):
        super().__init__()
        self.track = nn.Embedding(tracks, dim, sparse=sparse)
        self.hour = nn.Embedding(24, 8)
        self.mixer = nn.Sequential(
            nn.Linear(dim + 8, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.query = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, dim))
        nn.init.normal_(self.track.weight, std=0.1)

    def dense_parameters(self):
        return [p for name, p in self.named_parameters() if not name.startswith("track.")]

    def forward(self, history, hour, following, noise):
        played = self.track(history)
        when = self.hour(hour).unsqueeze(1).expand(-1, history.shape[1], -1)
        mixed = self.mixer(torch.cat([played, when], dim=-1)).mean(dim=1)
        query = self.query(mixed)
        good = (query * self.track(following)).sum(-1, keepdim=True)
        bad = query @ self.track(noise).T
        return torch.cat([good, bad], dim=1)
