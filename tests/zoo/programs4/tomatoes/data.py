import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class LeafPhotos(Dataset):
    def __init__(self, n, size=112, out=64, seed=0):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 8, n)
        spots = rng.normal(0, 40, (8, size, size, 3))
        noise = rng.normal(128, 40, (n, 1, 1, 3))
        self.photos = np.clip(spots[self.labels] + noise, 0, 255).astype(np.uint8)
        self.out = out

    def __len__(self):
        return len(self.labels)

    def crop(self, photo, rng):
        """Random resized crop, bilinear."""
        size = photo.shape[0]
        side = rng.uniform(0.5, 1.0) * (size - 1)
        top, left = rng.uniform(0, size - 1 - side, 2)
        grid = np.linspace(0, side, self.out, dtype=np.float32)
        y, x = top + grid, left + grid
        y0, x0 = y.astype(int), x.astype(int)
        wy, wx = (y - y0)[:, None, None], (x - x0)[None, :, None]
        y1, x1 = np.minimum(y0 + 1, size - 1), np.minimum(x0 + 1, size - 1)
        photo = photo.astype(np.float32)
        upper = photo[y0][:, x0] * (1 - wx) + photo[y0][:, x1] * wx
        lower = photo[y1][:, x0] * (1 - wx) + photo[y1][:, x1] * wx
        return upper * (1 - wy) + lower * wy

    def jitter(self, photo, rng):
        gray = photo.mean(2, keepdims=True)
        photo = gray + rng.uniform(0.6, 1.4) * (photo - gray)
        photo = photo.mean() + rng.uniform(0.6, 1.4) * (photo - photo.mean())
        noise = rng.standard_normal(photo.shape, dtype=np.float32)
        return np.clip(photo * rng.uniform(0.7, 1.3) + 8 * noise, 0, 255)

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        photo = self.jitter(self.crop(self.photos[i], rng), rng)
        if rng.random() < 0.5:
            photo = photo[:, ::-1]
        photo = (photo / 255 - 0.5) / 0.25
        return torch.from_numpy(photo.transpose(2, 0, 1).astype(np.float32)), self.labels[i]


class LeafData(L.LightningDataModule):
    def __init__(self, n, batch_size, num_workers):
        super().__init__()
        self.n, self.batch_size, self.num_workers = n, batch_size, num_workers

    def setup(self, stage):
        self.train = LeafPhotos(self.n)

    def train_dataloader(self):
        return DataLoader(
            self.train,
            self.batch_size,
            shuffle=True,
            num_workers=self.num_workers,
            persistent_workers=self.num_workers > 0,
        )
