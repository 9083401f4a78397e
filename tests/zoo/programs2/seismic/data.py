"""Synthetic seismograms: noise, and in half of them an arrival."""

import numpy as np
import torch
from torch.utils.data import Dataset

LENGTH = 3072
WINDOW = 128
HOP = 32


def bandpass(trace):
    low, high = np.random.uniform(0.01, 0.03), np.random.uniform(0.3, 0.45)
    spectrum = np.fft.rfft(trace)
    frequency = np.fft.rfftfreq(len(trace))
    spectrum *= 1.0 / (1.0 + (low / np.maximum(frequency, 1e-4)) ** 4)
    spectrum *= 1.0 / (1.0 + (frequency / high) ** 4)
    return np.fft.irfft(spectrum, len(trace))


def disturb(trace):
    trace = np.roll(trace, np.random.randint(-200, 200))
    trace = trace * np.random.uniform(0.7, 1.4)
    return trace + 0.2 * np.random.standard_normal(len(trace))


def spectrogram(trace):
    frames = np.lib.stride_tricks.sliding_window_view(trace, WINDOW)[::HOP]
    power = np.abs(np.fft.rfft(frames * np.hanning(WINDOW), axis=1)) ** 2
    return np.log1p(power[:, :64]).T


class Seismograms(Dataset):
    def __init__(self, count, seed=0):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 2, count)
        self.traces = rng.normal(size=(count, 3, LENGTH)).astype(np.float32)
        time = np.arange(LENGTH)
        for index in np.flatnonzero(self.labels):
            onset = rng.integers(400, LENGTH - 800)
            envelope = np.exp(-np.maximum(time - onset, 0) / 300) * (time >= onset)
            self.traces[index] += 3 * envelope * np.sin(time * rng.uniform(0.2, 0.6))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        channels = []
        for trace in self.traces[index]:
            trace = disturb(bandpass(trace))
            channels.append(spectrogram(trace))
        picture = np.stack(channels).astype(np.float32)
        picture = (picture - picture.mean()) / (picture.std() + 1e-6)
        return torch.from_numpy(picture), int(self.labels[index])
