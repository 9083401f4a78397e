import numpy as np
import torch


class Listens:
    """Implicit feedback: who listened to which show, in minutes, with the weekday."""

    def __init__(self, n_users, n_shows, n_events, seed=11):
        rng = np.random.default_rng(seed)
        taste = rng.integers(0, 12, n_users)
        users = rng.integers(0, n_users, n_events)
        popular = (rng.pareto(1.2, n_events) * 400).astype(np.int64)
        shows = (popular * 12 + taste[users]) % n_shows
        self.users = torch.from_numpy(users)
        self.shows = torch.from_numpy(shows)
        self.days = torch.from_numpy(rng.integers(0, 7, n_events))
        self.n_shows = n_shows

    def __len__(self):
        return len(self.users)

    def batches(self, size, negatives):
        order = torch.randperm(len(self))
        for part in order.split(size):
            if len(part) < size:
                return
            others = torch.randint(self.n_shows, (size, negatives))
            shows = torch.cat([self.shows[part, None], others], 1)
            yield self.users[part], shows, self.days[part]
