import torch
from torch.utils.data import Dataset


class Melodies(Dataset):
    def __init__(self, n, length, notes, seed=0):
        g = torch.Generator().manual_seed(seed)
        moves = torch.randint(-3, 4, (n, length), generator=g)
        self.notes = (moves.cumsum(dim=1) + notes // 2) % notes

    def __len__(self):
        return len(self.notes)

    def __getitem__(self, i):
        return {"input_ids": self.notes[i], "labels": self.notes[i]}
