import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, default_collate

from .features import log_spectrogram


class Vibrations(Dataset):
    """Accelerometer clips of healthy and worn bearings."""

    def __init__(self, count, samples, seed=4):
        rng = np.random.default_rng(seed)
        self.clips = rng.standard_normal((count, samples), dtype=np.float32)
        self.labels = rng.integers(0, 4, size=count)
        t = np.arange(samples, dtype=np.float32)
        for k in range(4):
            self.clips[self.labels == k] += np.sin(t * (0.1 + 0.1 * k))

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, index):
        return self.clips[index], int(self.labels[index])


def collate_spectrograms(samples):
    clips, labels = default_collate(samples)
    return torch.from_numpy(log_spectrogram(clips.numpy())), labels


class VibrationData(L.LightningDataModule):
    def __init__(self, features_in, clips=1024, samples=4096, batch_size=32):
        super().__init__()
        self.features_in, self.batch_size = features_in, batch_size
        self.dataset = Vibrations(clips, samples)

    def train_dataloader(self):
        return DataLoader(
            self.dataset,
            batch_size=self.batch_size,
            shuffle=True,
            num_workers=1,
            persistent_workers=True,
            collate_fn=collate_spectrograms if self.features_in == "collate" else None,
        )

    def on_after_batch_transfer(self, batch, dataloader_idx):
        clips, labels = batch
        if clips.dim() == 2:
            clips = torch.from_numpy(log_spectrogram(clips.numpy()))
        return clips, labels
