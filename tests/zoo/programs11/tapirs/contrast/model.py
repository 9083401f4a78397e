import copy

import torch
from torch import nn
from torch.nn import functional as F

from .queue import KeyQueue


class Contrast(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.encoder = nn.Sequential(
            nn.Linear(cfg.inputs, cfg.width),
            nn.ReLU(),
            nn.Linear(cfg.width, cfg.dim),
        )
        self.target = copy.deepcopy(self.encoder).requires_grad_(False)
        self.queue = KeyQueue(cfg.dim, cfg.queue)

    @torch.no_grad()
    def keys(self, view):
        ours, theirs = list(self.target.parameters()), list(self.encoder.parameters())
        torch._foreach_lerp_(ours, theirs, 1.0 - self.cfg.momentum)
        return F.normalize(self.target(view), dim=1)

    def forward(self, first, second):
        q = F.normalize(self.encoder(first), dim=1)
        k = self.keys(second)
        same = (q * k).sum(dim=1, keepdim=True)
        others = q @ self.queue.keys.T
        logits = torch.cat((same, others), dim=1) / self.cfg.temperature
        self.queue.push(k)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))
