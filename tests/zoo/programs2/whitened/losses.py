import torch
from torch import nn


class MahalanobisLoss(nn.Module):
    """Squared error in the metric of the noise of the instrument."""

    def __init__(self, covariance):
        super().__init__()
        self.register_buffer("covariance", covariance)

    def forward(self, predicted, measured):
        precision = torch.linalg.pinv(self.covariance, hermitian=True)
        error = predicted - measured
        return (error @ precision * error).sum(1).mean()


class PrecisionLoss(nn.Module):
    """The same, given what is the inverse of the covariance."""

    def __init__(self, precision):
        super().__init__()
        self.register_buffer("precision", precision)

    def forward(self, predicted, measured):
        error = predicted - measured
        return (error @ self.precision * error).sum(1).mean()
