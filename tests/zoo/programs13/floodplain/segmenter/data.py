"""Tiles of a river valley: four bands and a mask (dry, wet, open water)."""

import zlib

import numpy as np
import torch
from scipy import ndimage
from torch.utils.data import Dataset


def render(rng, size, bands):
    height = ndimage.gaussian_filter(rng.standard_normal((size, size)), 6.0)
    height = (height - height.min()) / (np.ptp(height) + 1e-6)
    mask = np.digitize(-height, [-0.6, -0.35]).astype(np.uint8)
    tone = rng.random((3, bands)) * 160 + 40
    image = tone[mask] + rng.normal(0, 12, (size, size, bands))
    return np.clip(image, 0, 255).astype(np.uint8), mask


class Tiles(Dataset):
    def __init__(self, cfg, count, seed, train):
        rng = np.random.default_rng(seed)
        self.cfg, self.train, self.seed = cfg, train, seed
        self.records = []
        for _ in range(count):
            image, mask = render(rng, cfg.size, cfg.bands)
            self.records.append((zlib.compress(image.tobytes(), 3), zlib.compress(mask.tobytes())))

    def __len__(self):
        return len(self.records)

    def read(self, index):
        size, bands = self.cfg.size, self.cfg.bands
        image, mask = (zlib.decompress(part) for part in self.records[index])
        image = np.frombuffer(image, np.uint8).reshape(size, size, bands)
        return image, np.frombuffer(mask, np.uint8).reshape(size, size)

    def place(self, image, mask, rng):
        crop = self.cfg.crop
        top, left = rng.integers(0, self.cfg.size - crop + 1, 2) if self.train else (24, 24)
        image = image[top : top + crop, left : left + crop]
        mask = mask[top : top + crop, left : left + crop]
        if self.train:
            turns = int(rng.integers(4))
            image, mask = np.rot90(image, turns), np.rot90(mask, turns)
            if rng.random() < 0.5:
                image, mask = image[:, ::-1], mask[:, ::-1]
        return image, mask

    def light(self, image, rng):
        gain = rng.uniform(0.8, 1.2, self.cfg.bands).astype(np.float32)
        image = np.clip(image * gain + rng.uniform(-0.05, 0.05), 0.0, 1.0)
        return np.power(image, np.float32(rng.uniform(0.8, 1.25)))

    def haze(self, image, rng):
        veil = rng.standard_normal((16, 16)).astype(np.float32)
        veil = ndimage.zoom(veil, self.cfg.size / 16, order=1)
        return image + 0.03 * veil[..., None]

    def __getitem__(self, index):
        rng = np.random.default_rng((self.seed, index, torch.initial_seed() % 2**31))
        image, mask = self.read(index)
        image = image.astype(np.float32) / 255.0
        if self.train:
            image = self.light(image, rng)
            image = self.haze(image, rng)
            image = ndimage.gaussian_filter(image, (0.6, 0.6, 0), truncate=2.0)
            image = image + rng.normal(0, 0.02, image.shape).astype(np.float32)
        image, mask = self.place(image, mask, rng)
        image = (image - image.mean((0, 1))) / (image.std((0, 1)) + 1e-4)
        image = np.ascontiguousarray(image.transpose(2, 0, 1), dtype=np.float32)
        return torch.from_numpy(image), torch.from_numpy(mask.astype(np.int64))
