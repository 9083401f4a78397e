import numpy as np
import torch
from torch.utils.data import Dataset


class Songs(Dataset):
    def __init__(self, count, transform=None, seconds=1.0, rate=16_000, seed=6):
        rng = np.random.default_rng(seed)
        self.waves = rng.standard_normal((200, int(seconds * rate))).astype(np.float32)
        self.birds = rng.integers(0, 12, count)
        self.transform = transform

    def __len__(self):
        return len(self.birds)

    def __getitem__(self, index):
        wave = torch.from_numpy(self.waves[index % len(self.waves)])
        if self.transform is not None:
            wave = self.transform(wave)
        return wave, int(self.birds[index])


class LogSpectrogram:
    def __init__(self, n_fft=512, hop=128, bands=64):
        self.n_fft, self.hop = n_fft, hop
        self.window = torch.hann_window(n_fft)
        self.bank = torch.rand(bands, n_fft // 2 + 1)

    def __call__(self, wave):
        spectrum = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
        return torch.log1p(self.bank @ spectrum.abs().square())
