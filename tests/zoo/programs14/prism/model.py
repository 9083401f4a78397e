"""The network: learned filters, magnitudes of their spectra, a classifier on top."""

import math

import torch
from torch import nn


class DenseSpectrum(nn.Module):
    """Magnitudes of the frequencies of each channel."""

    def __init__(self, size):
        super().__init__()
        time = torch.arange(size, dtype=torch.float64)
        freq = torch.arange(size // 2 + 1, dtype=torch.float64)
        angle = 2 * math.pi * torch.outer(time, freq) / size
        self.register_buffer("cos", angle.cos().float())
        self.register_buffer("sin", angle.sin().float())

    def forward(self, x):
        real = x @ self.cos
        imag = x @ self.sin
        return torch.sqrt(real.square() + imag.square() + 1e-6)


class Spectrum(nn.Module):
    """Magnitudes of the frequencies of each channel."""

    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        bins = torch.fft.rfft(x, n=self.size)
        return torch.sqrt(bins.real.square() + bins.imag.square() + 1e-6)


class Listener(nn.Module):
    def __init__(self, size, classes, spectrum):
        super().__init__()
        self.filters = nn.Conv1d(1, 12, 31, padding=15)
        self.spectrum = {"dense": DenseSpectrum, "fft": Spectrum}[spectrum](size)
        self.norm = nn.BatchNorm1d(12)
        self.mix1 = nn.Conv1d(12, 48, 9, stride=4, padding=4)
        self.mix2 = nn.Conv1d(48, 96, 5, padding=2)
        self.mix3 = nn.Conv1d(96, 96, 5, padding=2)
        self.head = nn.Linear(96, classes)

    def forward(self, wave):
        h = torch.relu(self.filters(wave.unsqueeze(1)))
        h = self.norm(self.spectrum(h))
        h = torch.relu(self.mix1(h))
        h = torch.relu(self.mix2(h))
        h = torch.relu(self.mix3(h))
        return self.head(h.mean(-1))
