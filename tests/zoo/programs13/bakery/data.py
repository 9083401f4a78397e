import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SIZE, KINDS = 32, 8


def write_store(path, count, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, KINDS, count)
    shades = np.random.default_rng(99).random((KINDS, 3, 4, 4))
    images = np.repeat(np.repeat(shades[labels], SIZE // 4, 2), SIZE // 4, 3)
    images = np.clip(images * 200 + rng.normal(0, 30, images.shape), 0, 255).astype(np.uint8)
    np.savez_compressed(path, images=images, labels=labels)


class Loaves(Dataset):
    """Opened by whoever reads it first, so that nothing large is pickled."""

    def __init__(self, path, first, last):
        self.path, self.first, self.last = path, first, last
        self.images = self.labels = None

    def __len__(self):
        return self.last - self.first

    def open(self):
        with np.load(self.path) as store:
            self.images, self.labels = store["images"], store["labels"]

    def __getitem__(self, index):
        if self.images is None:
            self.open()
        image = torch.from_numpy(self.images[self.first + index]).float().div_(255.0)
        return image, int(self.labels[self.first + index])


class LoavesData(L.LightningDataModule):
    def __init__(self, persistent, batch_size=32):
        super().__init__()
        self.persistent, self.batch_size = persistent, batch_size

    def prepare_data(self):
        write_store("loaves.npz", 2400, 4)

    def train_dataloader(self):
        return DataLoader(
            Loaves("loaves.npz", 0, 256),
            batch_size=self.batch_size,
            shuffle=True,
            num_workers=2,
            persistent_workers=self.persistent,
        )
