import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self, n_users, n_shows, dim=32, hidden=192):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.show = nn.Embedding(n_shows, dim)
        self.day = nn.Embedding(7, 8)
        nn.init.normal_(self.user.weight, std=0.05)
        nn.init.normal_(self.show.weight, std=0.05)
        self.score = nn.Sequential(
            nn.Linear(3 * dim + 8, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, users, shows, days):
        n = shows.shape[1]
        u = self.user(users)[:, None].expand(-1, n, -1)
        d = self.day(days)[:, None].expand(-1, n, -1)
        s = self.show(shows)
        return self.score(torch.cat([u, s, u * s, d], -1)).squeeze(-1)
