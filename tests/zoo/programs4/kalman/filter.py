import math

import torch
from torch import nn


class TrendFilter(nn.Module):
    """Local linear trend; the noise of a series comes from its features."""

    def __init__(self, n_features, hidden=64):
        super().__init__()
        self.noise = nn.Sequential(
            nn.Linear(n_features, hidden), nn.ReLU(), nn.Linear(hidden, 3), nn.Softplus()
        )
        self.register_buffer("move", torch.tensor([[1.0, 1.0], [0.0, 1.0]]))

    def nll(self, features, series):
        """Of any number of series at once: (..., n_features), (..., time)."""
        q_level, q_trend, r = (self.noise(features) + 1e-3).unbind(-1)
        q = torch.diag_embed(torch.stack([q_level, q_trend], -1))
        mean = torch.zeros(*series.shape[:-1], 2)
        cov = torch.eye(2).expand(*series.shape[:-1], 2, 2)
        total = torch.zeros(series.shape[:-1])
        for t in range(series.shape[-1]):
            mean = mean @ self.move.T
            cov = self.move @ cov @ self.move.T + q
            innovation = series[..., t] - mean[..., 0]
            s = cov[..., 0, 0] + r
            gain = cov[..., :, 0] / s[..., None]
            mean = mean + gain * innovation[..., None]
            cov = cov - gain[..., :, None] * cov[..., None, 0, :]
            total = total + 0.5 * (innovation**2 / s + s.log() + math.log(2 * math.pi))
        return total / series.shape[-1]
