"""Delivery tours: a sequence of stops each, sorted by depot, and how long the tour took."""

import torch
from torch.utils.data import Dataset


def make_tours(count, features, seed=19):
    generator = torch.Generator().manual_seed(seed)
    tours = []
    for i in range(count):
        stops = 12 if i < count // 2 else 88
        stops += int(torch.randint(-4, 5, (1,), generator=generator))
        tour = torch.randn(stops, features, generator=generator)
        tours.append((tour, tour[:, 0].abs().mean()))
    return tours


class TourShard(Dataset):
    def __init__(self, tours, rank, world, layout):
        if layout == "blocks":
            size = len(tours) // world
            self.tours = tours[rank * size : (rank + 1) * size]
        else:
            self.tours = tours[rank::world]

    def __len__(self):
        return len(self.tours)

    def __getitem__(self, index):
        return self.tours[index]


def join_tours(samples):
    """All stops one after the other, and the tour that each belongs to."""
    stops = torch.cat([tour for tour, _ in samples])
    owner = torch.arange(len(samples)).repeat_interleave(
        torch.tensor([len(tour) for tour, _ in samples])
    )
    return stops, owner, torch.stack([time for _, time in samples])
