import torch
from torch.utils.data import Dataset


def tensors(bands, cover):
    return torch.from_numpy(bands).float().div_(255), torch.from_numpy(cover).long()


class Tiles(Dataset):
    def __init__(self, bucket, stored, length):
        self.bucket = bucket
        self.stored = stored
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        bands, cover = self.bucket.get([index % self.stored])
        return tensors(bands[0], cover[0])


class TileLists(Tiles):
    def __getitems__(self, indices):
        bands, cover = self.bucket.get([index % self.stored for index in indices])
        return list(zip(*tensors(bands, cover)))
