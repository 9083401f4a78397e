"""Scans of stamps, as JPEG in memory; what they were printed from decides the class."""

import io

import numpy as np
from PIL import Image, ImageEnhance, ImageOps
from torch.utils.data import Dataset

SIZE = 160


def print_stamp(kind, rng):
    y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    waves = np.sin(2 * np.pi * ((kind + 2) * x + (9 - kind) * y) + rng.uniform(0, 6))
    paper = rng.uniform(0.5, 1.0, 3)
    picture = 0.5 + 0.35 * waves[..., None] * paper + rng.normal(0, 0.05, (SIZE, SIZE, 3))
    file = io.BytesIO()
    Image.fromarray((255 * picture.clip(0, 1)).astype(np.uint8)).save(file, "JPEG", quality=92)
    return file.getvalue()


class Album(Dataset):
    def __init__(self, n, n_kinds=8, crop=96, seed=0):
        rng = np.random.default_rng(seed)
        self.kinds = rng.integers(n_kinds, size=n)
        self.scans = [print_stamp(kind, rng) for kind in self.kinds]
        self.crop = crop

    def __len__(self):
        return len(self.scans)

    def __getitem__(self, i):
        image = Image.open(io.BytesIO(self.scans[i])).convert("RGB")
        rng = np.random.default_rng()
        image = image.rotate(rng.uniform(-12, 12), Image.BILINEAR)
        left, top = rng.integers(SIZE - self.crop, size=2)
        image = image.crop((left, top, left + self.crop, top + self.crop))
        if rng.random() < 0.5:
            image = ImageOps.mirror(image)
        image = ImageEnhance.Brightness(image).enhance(rng.uniform(0.8, 1.2))
        image = ImageEnhance.Contrast(image).enhance(rng.uniform(0.8, 1.2))
        pixels = np.asarray(image, dtype=np.float32) / 255 - 0.5
        return np.ascontiguousarray(pixels.transpose(2, 0, 1)), self.kinds[i]
