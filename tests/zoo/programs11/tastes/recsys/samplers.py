import random

import torch


class ExactSampler:
    """Items that the user has not touched."""

    def __init__(self, data, cfg):
        self.history = data.histories()
        self.items, self.count = cfg.items, cfg.negatives
        self.rng = random.Random(cfg.seed)

    def draw(self, user):
        seen = self.history[user]
        drawn = []
        while len(drawn) < self.count:
            item = self.rng.randint(0, self.items - 1)
            if item not in seen:
                drawn.append(item)
        return drawn

    def __call__(self, users):
        return torch.tensor([self.draw(user) for user in users.tolist()])


class MaskedSampler:
    def __init__(self, data, cfg):
        self.seen = torch.zeros(cfg.users, cfg.items, dtype=torch.bool)
        self.seen.scatter_(1, data.items, True)
        self.items, self.count = cfg.items, cfg.negatives

    def __call__(self, users):
        drawn = torch.randint(0, self.items, (len(users), self.count))
        taken = self.seen[users[:, None], drawn]
        while taken.any():
            again = torch.randint(0, self.items, drawn.shape)
            drawn = torch.where(taken, again, drawn)
            taken = self.seen[users[:, None], drawn]
        return drawn


SAMPLERS = {"exact": ExactSampler, "masked": MaskedSampler}
