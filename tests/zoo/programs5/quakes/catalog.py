"""Sequences of earthquakes: when, how strong, where. What comes next is to be told."""

import numpy as np
import torch
from torch.utils.data import Dataset


class Catalog(Dataset):
    def __init__(self, n, longest=48, seed=0):
        rng = np.random.default_rng(seed)
        self.sequences = []
        for _ in range(n):
            length = int(rng.integers(longest // 2, longest + 1))
            times = np.cumsum(rng.exponential(1.0, length)).astype(np.float32)
            strength = rng.gumbel(3, 0.6, length).astype(np.float32)
            place = np.cumsum(rng.normal(0, 0.1, (length, 2)), 0).astype(np.float32)
            self.sequences.append((times, strength, place))

    def __len__(self):
        return len(self.sequences)

    def __getitem__(self, i):
        return self.sequences[i]


def pad_events(batch):
    """Events, how far apart each two of them are in time and space, and which are real."""
    longest = max(len(times) for times, _, _ in batch)
    events = torch.zeros(len(batch), longest, 4)
    gaps = torch.zeros(len(batch), longest, longest, 2)
    mask = torch.zeros(len(batch), longest, dtype=torch.bool)
    for b, (times, strength, place) in enumerate(batch):
        n = len(times)
        events[b, :n] = torch.from_numpy(np.column_stack([times, strength, place]))
        mask[b, :n] = True
        table = [[[0.0, 0.0] for _ in range(n)] for _ in range(n)]
        for i in range(n):
            for j in range(i):
                dx, dy = place[i][0] - place[j][0], place[i][1] - place[j][1]
                table[i][j] = [times[i] - times[j], (dx * dx + dy * dy) ** 0.5]
        gaps[b, :n, :n] = torch.tensor(table)
    return events, gaps, mask


def pad_events_numpy(batch):
    longest = max(len(times) for times, _, _ in batch)
    events = np.zeros((len(batch), longest, 4), np.float32)
    gaps = np.zeros((len(batch), longest, longest, 2), np.float32)
    mask = np.zeros((len(batch), longest), bool)
    for b, (times, strength, place) in enumerate(batch):
        n = len(times)
        events[b, :n, 0], events[b, :n, 1], events[b, :n, 2:] = times, strength, place
        gaps[b, :n, :n, 0] = np.tril(times[:, None] - times)
        gaps[b, :n, :n, 1] = np.tril(np.linalg.norm(place[:, None] - place, axis=-1))
        mask[b, :n] = True
    return torch.from_numpy(events), torch.from_numpy(gaps), torch.from_numpy(mask)
