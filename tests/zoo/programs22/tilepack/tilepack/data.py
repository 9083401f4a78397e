import zipfile

import torch
from torch.utils.data import Dataset

from tilepack.archive import decode, read_index


def label_of(name):
    return int(name.rsplit("_", 1)[1].removesuffix(".npy"))


class Tiles(Dataset):
    def __init__(self, paths):
        self.index = read_index(paths)

    def __len__(self):
        return len(self.index)

    def read_tile(self, path, name):
        with zipfile.ZipFile(path) as archive:
            return decode(archive.read(name))

    def __getitem__(self, position):
        path, name = self.index[position]
        return torch.from_numpy(self.read_tile(path, name)), label_of(name)


class HeldTiles(Tiles):
    """Each process that reads tiles has its own handles."""

    def __init__(self, paths):
        super().__init__(paths)
        self.archives = {}

    def read_tile(self, path, name):
        archive = self.archives.get(path)
        if archive is None:
            archive = self.archives[path] = zipfile.ZipFile(path)
        return decode(archive.read(name))
