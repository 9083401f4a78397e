import torch
from torch.utils.data import Dataset

SIDE = 48
TISSUES = 4


def make_slices(count, seed):
    g = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    center = torch.rand(count, 2, 1, 1, generator=g) * 12 + 18
    radius = torch.sqrt((y - center[:, 0]) ** 2 + (x - center[:, 1]) ** 2)
    masks = (radius < 18).long() + (radius < 12).long() + (radius < 6).long()
    slices = masks.float() * 0.3 + 0.15 * torch.randn(count, SIDE, SIDE, generator=g)
    return slices.unsqueeze(1), masks


class Slices(Dataset):
    """Whole batches are read with a list of indices."""

    def __init__(self, count, seed):
        self.slices, self.masks = make_slices(count, seed)

    def __len__(self):
        return len(self.masks)

    def __getitem__(self, rows):
        return self.slices[rows], self.masks[rows]
