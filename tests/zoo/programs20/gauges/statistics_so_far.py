import torch


class Collected:
    """Mean and spread of the hidden units over all rows so far."""

    def __init__(self, width):
        self.rows = torch.empty(0, width)

    def add(self, rows):
        self.rows = torch.cat([self.rows, rows])

    def spread(self):
        return self.rows.std(dim=0), self.rows.mean(dim=0)


class Summed:
    def __init__(self, width):
        self.count = 0
        self.sums = torch.zeros(width, dtype=torch.float64)
        self.squares = torch.zeros(width, dtype=torch.float64)

    def add(self, rows):
        self.count += len(rows)
        self.sums += rows.sum(dim=0)
        self.squares += rows.square().sum(dim=0)

    def spread(self):
        mean = self.sums / self.count
        return (self.squares / self.count - mean.square()).clamp(min=0).sqrt(), mean
