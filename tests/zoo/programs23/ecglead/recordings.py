import numpy as np
import torch
from filters import RATE
from torch.utils.data import Dataset

SECONDS = 3
SAMPLES = SECONDS * RATE
RHYTHMS = ("sinus", "afib", "pvc")


def synthesize(count, seed):
    rng = np.random.default_rng(seed)
    time = np.arange(SAMPLES) / RATE
    signals = np.zeros((count, 2, SAMPLES), dtype=np.float32)
    labels = rng.integers(0, len(RHYTHMS), size=count)
    for i, label in enumerate(labels):
        gap = rng.uniform(0.6, 1.0)
        jitter = 0.2 if label == 1 else 0.02
        beats = np.arange(0.1, SECONDS, gap) + rng.normal(
            0, jitter, size=len(np.arange(0.1, SECONDS, gap))
        )
        for k, beat in enumerate(beats):
            width = 0.06 if label == 2 and k % 3 == 2 else 0.02
            signals[i] += np.exp(-(((time - beat) / width) ** 2)).astype(np.float32)
        drift = 0.6 * np.sin(2 * np.pi * 0.25 * time + rng.uniform(0, 6))
        hum = 0.2 * np.sin(2 * np.pi * 50 * time)
        signals[i] += (drift + hum).astype(np.float32)
    signals += rng.normal(0, 0.03, size=signals.shape).astype(np.float32)
    return signals, labels


class Recordings(Dataset):
    def __init__(self, signals, labels, denoise):
        self.signals = signals
        self.labels = torch.from_numpy(labels)
        self.denoise = denoise

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        leads = self.denoise(self.signals[index])
        leads = leads / (np.abs(leads).max(axis=1, keepdims=True) + 1e-6)
        return torch.from_numpy(leads), self.labels[index]
