import numpy as np
import torch


class SetSampler:
    """Tracks that a listener has not played."""

    def __init__(self, played, tracks):
        self.tracks = tracks
        self.played = [set(np.flatnonzero(row).tolist()) for row in played]

    def sample(self, users, count):
        rows = []
        for user in users.tolist():
            row = []
            for _ in range(count):
                track = np.random.randint(self.tracks)
                while track in self.played[user]:
                    track = np.random.randint(self.tracks)
                row.append(track)
            rows.append(row)
        return torch.tensor(rows)


class MaskSampler:
    def __init__(self, played, tracks):
        self.tracks = tracks
        self.played = torch.from_numpy(played)

    def sample(self, users, count):
        drawn = torch.randint(self.tracks, (len(users), count))
        for _ in range(3):
            bad = self.played[users[:, None], drawn]
            drawn = torch.where(bad, torch.randint_like(drawn, self.tracks), drawn)
        return drawn
