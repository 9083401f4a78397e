"""Raptor photographs, a LightningModule and a Trainer."""

import argparse
import logging
import time
import warnings

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class Raptors(Dataset):
    def __init__(self, count, side=104):
        rng = np.random.default_rng(1)
        self.photos = rng.integers(0, 256, (count, side, side, 3), dtype=np.uint8)
        self.species = rng.integers(0, 8, count)

    def __len__(self):
        return len(self.photos)

    def crop(self, photo, rng):
        y, x = rng.integers(0, 9, 2)
        photo = photo[y : y + 96, x : x + 96]
        return photo[:, ::-1] if rng.random() < 0.5 else photo

    def tone(self, photo, rng):
        gamma = rng.uniform(0.8, 1.25)
        return (photo.astype(np.float32) / 255.0) ** np.float32(gamma)

    def shade(self, photo, rng):
        axis = np.linspace(-1, 1, len(photo), dtype=np.float32)
        away = np.hypot(axis[:, None] - rng.uniform(-0.3, 0.3), axis - rng.uniform(-0.3, 0.3))
        return photo * np.exp(-0.3 * away * away)[..., None].astype(np.float32)

    def contrast(self, photo, rng):
        mean = photo.mean((0, 1), keepdims=True)
        grey = photo @ np.array([0.3, 0.59, 0.11], np.float32)
        mixed = photo + (grey[..., None] - photo) * np.float32(rng.uniform(0, 0.3))
        return np.clip((mixed - mean) * np.float32(rng.uniform(0.8, 1.2)) + mean, 0, 1)

    def blur(self, photo):
        padded = np.pad(photo, ((1, 1), (1, 1), (0, 0)), mode="edge")
        rows = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
        return (rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) / 4

    def grain(self, photo, rng):
        return photo + rng.normal(0, 0.02, photo.shape).astype(np.float32)

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        photo = self.crop(self.photos[index], rng)
        photo = self.tone(photo, rng)
        photo = self.shade(photo, rng)
        photo = self.contrast(photo, rng)
        photo = self.blur(photo)
        photo = self.grain(photo, rng)
        photo = (photo - 0.5) / 0.25
        return torch.from_numpy(photo.transpose(2, 0, 1).copy()), int(self.species[index])


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 32, 7, stride=4, padding=3),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, 8),
        )

    def training_step(self, batch, batch_idx):
        photos, species = batch
        return nn.functional.cross_entropy(self.net(photos), species)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(1, verbose=False)
    loader = DataLoader(Raptors(120 * 16), 16, shuffle=True, num_workers=args.workers)
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Classifier()
    start = time.perf_counter()
    trainer.fit(model, loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")
