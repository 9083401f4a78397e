import numpy as np
import torch
from torch.utils.data import Dataset


class TileDataset(Dataset):
    """One request a tile."""

    def __init__(self, bucket, size=48):
        self.bucket = bucket
        self.size = size

    def __len__(self):
        return len(self.bucket.objects)

    def decode(self, blob):
        tile = np.frombuffer(blob, np.uint8).reshape(self.size, self.size, 3)
        return torch.from_numpy(tile.transpose(2, 0, 1) / np.float32(255))

    def __getitem__(self, index):
        tile = self.decode(self.bucket.get(index))
        return tile, tile.mean((1, 2))


class BatchedTileDataset(TileDataset):
    """One request a batch."""

    def __getitems__(self, indices):
        tiles = [self.decode(blob) for blob in self.bucket.get_many(indices)]
        return [(tile, tile.mean((1, 2))) for tile in tiles]
