import torch
from torch import nn


class PairInteraction(nn.Module):
    """Second-order term: the sum of the products of all pairs of fields."""

    def __init__(self, fields):
        super().__init__()
        left, right = torch.triu_indices(fields, fields, offset=1)
        self.register_buffer("left", left)
        self.register_buffer("right", right)

    def forward(self, v):
        return (v[:, self.left] * v[:, self.right]).sum(dim=1)


class SquareInteraction(nn.Module):
    """Second-order term: the sum of the products of all pairs of fields."""

    def __init__(self, fields):
        super().__init__()

    def forward(self, v):
        return 0.5 * (v.sum(dim=1).square() - v.square().sum(dim=1))


INTERACTIONS = {"pairs": PairInteraction, "squares": SquareInteraction}
