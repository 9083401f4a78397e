"""Field recordings: a long int16 array per site, cut into labelled snippets."""

import numpy as np
from torch.utils.data import Dataset

RATE = 16000
SNIPPET = RATE  # one second
N_FFT, HOP, N_MELS = 512, 160, 64


def make_site(path, seconds, n_species, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(RATE) / RATE
    audio = np.empty(seconds * RATE, np.int16)
    labels = rng.integers(0, n_species, seconds)
    for s in range(seconds):
        base = 600 + 500 * labels[s]
        chirp = np.sin(2 * np.pi * (base + 300 * t * rng.uniform(0.5, 1.5)) * t)
        wave = chirp * rng.uniform(0.2, 0.9) + rng.normal(0, 0.3, RATE)
        audio[s * RATE : (s + 1) * RATE] = np.clip(wave * 8000, -32768, 32767)
    np.save(path, audio)
    return labels


def mel_matrix():
    def to_mel(f):
        return 2595 * np.log10(1 + f / 700)

    edges = 700 * (10 ** (np.linspace(to_mel(50), to_mel(RATE / 2), N_MELS + 2) / 2595) - 1)
    freqs = np.fft.rfftfreq(N_FFT, 1 / RATE)
    up = (freqs[None] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - freqs[None]) / (edges[2:] - edges[1:-1])[:, None]
    return np.clip(np.minimum(up, down), 0, None).astype(np.float32)


class Snippets(Dataset):
    def __init__(self, path, labels, train=True, seed=0):
        self.audio = np.load(path, mmap_mode="r")
        self.labels = labels
        self.train = train
        self.seed = seed
        self.mels = mel_matrix()
        self.window = np.hanning(N_FFT).astype(np.float32)

    def __len__(self):
        return len(self.labels)

    def load(self, i, rng):
        shift = int(rng.integers(-800, 801)) if self.train else 0
        start = min(max(i * RATE + shift, 0), len(self.audio) - SNIPPET)
        return self.audio[start : start + SNIPPET].astype(np.float32) / 32768

    def augment(self, wave, rng):
        wave = wave * rng.uniform(0.6, 1.4) + rng.normal(0, 0.01, wave.shape)
        # a short room
        tail = rng.normal(0, 1, 1200) * np.exp(-np.arange(1200) / 200)
        size = 1 << int(np.ceil(np.log2(len(wave) + len(tail))))
        wet = np.fft.irfft(np.fft.rfft(wave, size) * np.fft.rfft(tail, size), size)[: len(wave)]
        return (wave + 0.05 * wet).astype(np.float32)

    def features(self, wave):
        frames = np.lib.stride_tricks.sliding_window_view(wave, N_FFT)[::HOP] * self.window
        power = np.abs(np.fft.rfft(frames, axis=-1)).astype(np.float32) ** 2
        logmel = np.log(power @ self.mels.T + 1e-6)
        return ((logmel - logmel.mean()) / (logmel.std() + 1e-5)).T

    def __getitem__(self, i):
        rng = np.random.default_rng((self.seed, i))
        wave = self.load(i, rng)
        if self.train:
            wave = self.augment(wave, rng)
        return self.features(wave)[None].astype(np.float32), int(self.labels[i])
