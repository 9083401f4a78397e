import math

import torch
from torch import nn


class DemandModel(nn.Module):
    """Each product has an autoregression of its own, made from what is known of the product."""

    def __init__(self, n_features, order=16, hidden=768):
        super().__init__()
        self.order = order
        self.net = nn.Sequential(
            nn.Linear(n_features, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, order + 2),
        )

    def forward(self, features):
        return self.net(features)


def nll(theta, series, order):
    """Of any number of series at once: (..., order + 2), (..., time)."""
    weights = torch.softmax(theta[..., :order], -1)
    level, log_scale = theta[..., order : order + 1], theta[..., order + 1 :]
    past = series[..., :-1].unfold(-1, order, 1)
    predicted = (past * weights[..., None, :]).sum(-1) + 0.1 * level
    error = (series[..., order:] - predicted) * torch.exp(-log_scale)
    return (0.5 * error**2 + log_scale).mean(-1) + 0.5 * math.log(2 * math.pi)
