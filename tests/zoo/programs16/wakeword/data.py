"""Short clips with a wake word or without, mixed with background noise."""

import numpy as np
import torch
from torch.utils.data import Dataset


def write_noise_bank(path, clips, length, seed):
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((clips, length)).astype(np.float32)
    np.save(path, noise)


class NoiseBank:
    def __init__(self, path):
        noise = np.load(path)
        spectrum = np.fft.rfft(noise, axis=1)
        spectrum /= np.sqrt(1.0 + np.arange(spectrum.shape[1]))
        self.noise = np.fft.irfft(spectrum, axis=1).astype(np.float32)

    def pick(self, rng):
        return self.noise[rng.integers(len(self.noise))]


class WakeWordDataset(Dataset):
    def __init__(self, count, length, noise_path, seed):
        self.count, self.length, self.noise_path, self.seed = count, length, noise_path, seed
        self.bank = None

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.bank is None:
            self.bank = NoiseBank(self.noise_path)
        rng = np.random.default_rng(self.seed + index)
        label = index % 2
        clip = self.bank.pick(rng) * 0.5
        if label:
            clip = clip + np.sin(np.arange(self.length, dtype=np.float32) * 0.07)
        return torch.from_numpy(clip), label
