import numpy as np
from torch.utils.data import Dataset


def resize(picture, size):
    """Bilinear."""
    height, width = picture.shape
    out = np.zeros((size, size), np.float32)
    for row in range(size):
        y = row * (height - 1) / (size - 1)
        y0 = min(int(y), height - 2)
        for column in range(size):
            x = column * (width - 1) / (size - 1)
            x0 = min(int(x), width - 2)
            fy, fx = y - y0, x - x0
            out[row, column] = (
                picture[y0, x0] * (1 - fy) * (1 - fx)
                + picture[y0, x0 + 1] * (1 - fy) * fx
                + picture[y0 + 1, x0] * fy * (1 - fx)
                + picture[y0 + 1, x0 + 1] * fy * fx
            )
    return out


def resize_at_once(picture, size):
    """Bilinear, for all pixels together."""
    height, width = picture.shape
    y = np.linspace(0, height - 1, size, dtype=np.float32)
    x = np.linspace(0, width - 1, size, dtype=np.float32)
    y0 = np.minimum(y.astype(int), height - 2)
    x0 = np.minimum(x.astype(int), width - 2)
    fy = (y - y0).astype(np.float32)[:, None]
    fx = (x - x0).astype(np.float32)
    top = picture[y0][:, x0] * (1 - fx) + picture[y0][:, x0 + 1] * fx
    bottom = picture[y0 + 1][:, x0] * (1 - fx) + picture[y0 + 1][:, x0 + 1] * fx
    return top * (1 - fy) + bottom * fy


def collect(count, seed):
    """Ellipses and rods, cut out of the frame with whatever size they have."""
    rng = np.random.default_rng(seed)
    pictures, labels = [], []
    for _ in range(count):
        height, width = rng.integers(40, 90, 2)
        y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
        rod = int(rng.integers(2))
        body = (np.abs(y) < 0.25) if rod else (y**2 + x**2 < 0.8)
        pictures.append((body + rng.normal(0, 0.4, body.shape)).astype(np.float32))
        labels.append(rod)
    return pictures, labels


class Plankton(Dataset):
    def __init__(self, count, size, scale, seed=0):
        self.pictures, self.labels = collect(count, seed)
        self.size = size
        self.scale = scale

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        picture = self.scale(self.pictures[index], self.size)
        return picture[None], self.labels[index]
