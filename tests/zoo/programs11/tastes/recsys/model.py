import torch
from torch import nn
from torch.nn import functional as F


class TwoTower(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.user = nn.Sequential(
            nn.Linear(cfg.profile, cfg.width),
            nn.ReLU(),
            nn.Linear(cfg.width, cfg.width),
            nn.ReLU(),
            nn.Linear(cfg.width, cfg.dim),
        )
        self.item = nn.Embedding(cfg.items, cfg.dim)

    def forward(self, profiles, liked, others):
        items = self.item(torch.cat((liked[:, None], others), dim=1))
        scores = torch.bmm(items, self.user(profiles)[:, :, None]).squeeze(2)
        return F.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.long))
