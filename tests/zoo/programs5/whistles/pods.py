"""Whistles of dolphins, mixed with the sea and made into spectrograms by the workers."""

import torch
from torch.utils.data import Dataset


class Whistles(Dataset):
    def __init__(self, n, length=16384, n_pods=5):
        self.n = n
        self.length = length
        self.n_pods = n_pods
        self.sea = torch.randn(64, length, generator=torch.Generator().manual_seed(0))
        self.window = torch.hann_window(256)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        pod = i % self.n_pods
        t = torch.arange(self.length) / 16000
        sound = torch.sin(2 * torch.pi * (800 + 300 * pod + 500 * torch.sin(3 * t)) * t)
        sound = sound + 0.5 * self.sea[i % 64]
        room = torch.exp(-torch.arange(2048) / 300) * self.sea[(i + 1) % 64, :2048]
        n = 2 * self.length
        sound = torch.fft.irfft(torch.fft.rfft(sound, n) * torch.fft.rfft(room, n))[: self.length]
        picture = torch.stft(sound, 256, 128, window=self.window, return_complex=True).abs()
        return torch.log1p(picture)[None, :128], pod
