"""Scanned plant sheets, kept compressed in memory as the archive delivers them."""

import zlib

import numpy as np
import torch
from torch.utils.data import Dataset

SIDE = 72
CROP = 64


def make_archive(count, seed=11):
    rng = np.random.default_rng(seed)
    blobs, species = [], []
    for _ in range(count):
        coarse = rng.integers(0, 256, (SIDE // 4, SIDE // 4, 3), dtype=np.uint8)
        image = coarse.repeat(4, axis=0).repeat(4, axis=1)
        image = image + rng.integers(0, 4, image.shape, dtype=np.uint8)
        blobs.append(zlib.compress(image.astype(np.uint8).tobytes(), 6))
        species.append(int(rng.integers(0, 20)))
    return blobs, species


class HerbariumSheets(Dataset):
    mean = np.array([0.48, 0.46, 0.41], dtype=np.float32)
    std = np.array([0.23, 0.22, 0.24], dtype=np.float32)

    def __init__(self, blobs, species, train=True):
        self.blobs = blobs
        self.species = species
        self.train = train

    def __len__(self):
        return len(self.blobs)

    def decode(self, blob):
        raw = zlib.decompress(blob)
        return np.frombuffer(raw, dtype=np.uint8).reshape(SIDE, SIDE, 3)

    def crop_and_flip(self, image):
        top, left = np.random.randint(0, SIDE - CROP, 2)
        image = image[top : top + CROP, left : left + CROP]
        return image[:, ::-1] if np.random.rand() < 0.5 else image

    def jitter(self, image):
        gain = np.float32(np.random.uniform(0.8, 1.2))
        image = np.clip(image.astype(np.float32) * (gain / 255.0), 0.0, 1.0)
        grey = image.mean(axis=2, keepdims=True)
        return grey + (image - grey) * np.float32(np.random.uniform(0.7, 1.3))

    def __getitem__(self, index):
        image = self.decode(self.blobs[index])
        if self.train:
            image = self.jitter(self.crop_and_flip(image))
        image = (image - self.mean) / self.std
        return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))), self.species[index]
