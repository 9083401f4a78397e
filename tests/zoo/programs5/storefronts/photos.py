import numpy as np
from PIL import Image
from torch.utils.data import Dataset


def photograph(shop, rng, size=512):
    """A front with a sign and windows whose number depends on the shop."""
    picture = np.full((size, size, 3), rng.integers(90, 200, 3), np.uint8)
    picture[40:120, 60:-60] = rng.integers(0, 256, 3)
    for k in range(shop + 1):
        left = 40 + k * (size - 80) // (shop + 1)
        picture[220:440, left : left + 30] = (200, 220, 240)
    return picture + rng.integers(0, 20, picture.shape, dtype=np.uint8)


class Storefronts(Dataset):
    def __init__(self, n, transform, n_shops=6, seed=0):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(n_shops, size=n)
        self.photos = [Image.fromarray(photograph(label, rng)) for label in self.labels]
        self.transform = transform

    def __len__(self):
        return len(self.photos)

    def __getitem__(self, i):
        return self.transform(self.photos[i]), int(self.labels[i])
