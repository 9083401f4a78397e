"""Features of what the encoder has seen, for the scatter plots of the report."""

import torch


class FeatureBank:
    def __init__(self, limit=None):
        self.limit = limit
        self.features = None

    def add(self, features):
        features = features.detach()
        if self.features is not None:
            features = torch.cat([self.features, features])
        self.features = features[-self.limit :] if self.limit else features

    def spread(self, rows=256):
        return self.features[-rows:].std(0).mean().item()
