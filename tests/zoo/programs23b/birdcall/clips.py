"""Field recordings of birds: a chirp per species in wind noise."""

import numpy as np
import torch
from torch.utils.data import Dataset

RATE = 16000
SECONDS = 3
SPECIES = 8


def chirp(species, rng):
    time = np.arange(RATE * SECONDS, dtype=np.float32) / RATE
    low = 900 + 600 * species
    sweep = low * time + 150 * np.sin(2 * np.pi * 3 * time)
    call = np.sin(2 * np.pi * sweep) * (rng.random() + 0.2)
    return (call + 0.3 * rng.standard_normal(len(time), dtype=np.float32)).astype(np.float32)


class FieldClips(Dataset):
    def __init__(self, count, seed, transform=None):
        rng = np.random.default_rng(seed)
        self.species = rng.integers(SPECIES, size=count)
        self.waves = [torch.from_numpy(chirp(species, rng)) for species in self.species]
        self.transform = transform

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, position):
        wave = self.waves[position]
        if self.transform is not None:
            wave = self.transform(wave)
        return wave, int(self.species[position])
