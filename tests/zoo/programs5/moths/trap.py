import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Moths(Dataset):
    """Photographs from a light trap, 48x48, taken in one night."""

    def __init__(self, n=640, n_species=10, seed=0):
        rng = np.random.default_rng(seed)
        self.species = rng.integers(n_species, size=n)
        wings = rng.uniform(0, 255, (n_species, 48, 48, 3))
        noise = rng.normal(0, 40, (n, 48, 48, 3))
        self.photos = (wings[self.species] + noise).clip(0, 255).astype(np.uint8)

    def __len__(self):
        return len(self.photos)

    def __getitem__(self, i):
        photo = self.photos[i]
        if np.random.random() < 0.5:
            photo = photo[:, ::-1]
        photo = np.roll(photo, np.random.randint(-4, 5, 2), (0, 1))
        photo = np.rot90(photo, np.random.randint(4)).astype(np.float32) / 255
        return torch.from_numpy(photo.transpose(2, 0, 1).copy()), int(self.species[i])


class TrapData(L.LightningDataModule):
    def __init__(self, batch_size=64, workers=2, keep_workers=False):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage):
        self.moths = Moths()

    def train_dataloader(self):
        return DataLoader(
            self.moths,
            batch_size=self.hparams.batch_size,
            shuffle=True,
            num_workers=self.hparams.workers,
            persistent_workers=self.hparams.keep_workers,
        )
