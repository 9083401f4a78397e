"""A Kalman filter whose noise is learned by gradient descent through it."""

import torch
from torch import nn


class LearnedFilter(nn.Module):
    def __init__(self, n_features, hidden=256):
        super().__init__()
        self.noise = nn.Sequential(
            nn.Linear(n_features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 2),
        )  # fmt: skip
        self.register_buffer("F", torch.tensor([[1.0, 1.0], [0.0, 1.0]]))
        self.register_buffer("H", torch.tensor([[1.0, 0.0]]))

    def track(self, observed, q, r):
        """Negative log likelihood of one track."""
        x, P = torch.zeros(2, 1), torch.eye(2)
        Q = q * torch.eye(2)
        total = 0.0
        for z in observed:
            x, P = self.F @ x, self.F @ P @ self.F.T + Q
            S = self.H @ P @ self.H.T + r
            error = z - self.H @ x
            K = P @ self.H.T / S
            x, P = x + K * error, (torch.eye(2) - K @ self.H) @ P
            total = total + 0.5 * (error**2 / S + S.log()).squeeze()
        return total

    def forward(self, features, observed):
        q, r = nn.functional.softplus(self.noise(features)).T + 1e-3
        losses = [self.track(*one) for one in zip(observed, q, r)]
        return torch.stack(losses).mean() / observed.shape[1]


class BatchedFilter(LearnedFilter):
    def forward(self, features, observed):
        q, r = nn.functional.softplus(self.noise(features)).T + 1e-3
        n = len(observed)
        x, P = torch.zeros(n, 2, 1), torch.eye(2).expand(n, 2, 2)
        Q = q[:, None, None] * torch.eye(2)
        total = torch.zeros(n)
        for z in observed.T:
            x, P = self.F @ x, self.F @ P @ self.F.T + Q
            S = self.H @ P @ self.H.T + r[:, None, None]
            error = z[:, None, None] - self.H @ x
            K = P @ self.H.T / S
            x, P = x + K * error, (torch.eye(2) - K @ self.H) @ P
            total = total + 0.5 * (error**2 / S + S.log()).flatten()
        return total.mean() / observed.shape[1]
