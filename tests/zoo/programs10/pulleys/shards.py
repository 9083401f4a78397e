"""Recordings of machines, kept in shards; a shard becomes spectrograms at once."""

import numpy as np
import torch
from torch.utils.data import IterableDataset

FRAMES = 48
FRAME = 512
BANDS = 64
CLASSES = 6


def write_shards(count, size, seed):
    rng = np.random.default_rng(seed)
    clock = np.arange(FRAMES * FRAME, dtype=np.float32) / 8000
    tones = np.stack([np.sin(2 * np.pi * 200 * (1 + label) * clock) for label in range(CLASSES)])
    hiss = rng.standard_normal(len(clock), dtype=np.float32)
    for shard in range(count):
        labels = rng.integers(0, CLASSES, size)
        loudness = 1000 + 3000 * rng.random((size, 1), dtype=np.float32)
        waves = loudness * tones[labels] + 3000 * hiss
        np.savez(f"shard{shard:03d}.npz", waves=waves.astype(np.int16), labels=labels)


def spectrograms(waves):
    frames = waves.reshape(len(waves), FRAMES, FRAME).astype(np.float32) * np.hanning(FRAME).astype(
        np.float32
    )
    power = np.abs(np.fft.rfft(frames)[..., : FRAME // 2]) ** 2
    return np.log1p(power.reshape(len(waves), FRAMES, BANDS, -1).mean(axis=-1)).astype(np.float32)


class Recordings(IterableDataset):
    def __init__(self, shards):
        self.shards = shards

    def __iter__(self):
        for shard in range(self.shards):
            with np.load(f"shard{shard:03d}.npz") as file:
                waves, labels = file["waves"], file["labels"]
            features = torch.from_numpy(spectrograms(waves)).transpose(1, 2)
            yield from zip(features, labels.tolist(), strict=True)
